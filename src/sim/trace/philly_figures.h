/* Figures of the Philly trace, for generate.c.
 *
 * Computed from philly-jobs.csv (82,247 jobs, 2017-09-04 to 2017-12-22; Jeon et al., USENIX ATC
 * 2019, CC-BY 4.0), as follows. Durations: quantiles of all jobs of a class of sizes. Hours,
 * weekdays and bursts: of the eleven full weeks from 2017-09-25 to 2017-12-10. A burst is what one
 * virtual cluster submits of one size with at most 300 s between one job and the next. Virtual
 * clusters are the tenants.
 *
 * A quantile between two points of a table is interpolated linearly.
 */
#ifndef SW_SIM_TRACE_PHILLY_FIGURES_H
#define SW_SIM_TRACE_PHILLY_FIGURES_H

#include <stdint.h>

/* Jobs by GPUs, and which row of the tables below their durations and bursts follow. */
static const struct {
	uint32_t gpus;
	uint32_t jobs;
	uint32_t duration_class;
	uint32_t burst_class;
} philly_sizes[] = {
	{1, 76627, 0, 0}, {2, 1818, 1, 1}, {4, 1870, 2, 1}, {8, 1643, 3, 2}, {12, 7, 4, 2},
	{16, 199, 4, 2},  {24, 7, 5, 2},   {32, 67, 5, 2},  {64, 6, 5, 2},   {128, 3, 5, 2},
};

/* Quantiles of durations, in seconds: 1, 2, 4, 8, 12 to 16, and more GPUs.
 * Points in ten-thousandths. */
#define PHILLY_DURATION_POINTS 35
static const uint32_t philly_duration_points[PHILLY_DURATION_POINTS] = {
	0,    100,  200,  500,	1000, 1500, 2000, 2500, 3000, 3500, 4000, 4500, 5000, 5500, 6000, 6500, 7000,  7500,
	8000, 8500, 9000, 9250, 9500, 9600, 9700, 9800, 9850, 9900, 9925, 9950, 9980, 9990, 9995, 9998, 10000,
};
static const uint32_t philly_durations_s[6][PHILLY_DURATION_POINTS] = {
	{
		1,     30,    42,    52,     62,     69,     76,     122,    215,     385,     600,	855,
		1117,  1446,  1728,  2054,   2464,   2716,   3754,   5342,   8512,    11166,   19137,	26416,
		44233, 68252, 93428, 135399, 176022, 266914, 502224, 865709, 1447517, 2146149, 3256045,
	},
	{
		2,	5,	7,	9,	11,	13,	15,	 16,	  17,	   18,	    19,	     20,
		21,	23,	25,	28,	33,	76,	149,	 22255,	  72740,   124488,  197062,  232484,
		267687, 343862, 428215, 523316, 621108, 808064, 1398359, 1474215, 1618289, 2196998, 2582803,
	},
	{
		3,	36,	45,	75,	138,	 179,	  405,	   773,	    1696,    4458,    7468,    13087,
		17410,	26251,	36288,	56846,	78660,	 89394,	  106284,  151448,  184435,  196484,  273968,  357337,
		449497, 533378, 654304, 907376, 1105898, 1205990, 1862334, 2446301, 2648713, 2709889, 2750674,
	},
	{
		1,	33,	67,	125,	 216,	  464,	   785,	    1876,    4011,    7266,    12382,	16651,
		23683,	36595,	65014,	105941,	 140721,  173248,  203050,  242252,  351982,  408314,  525618,	592840,
		667789, 795161, 926435, 1060498, 1126442, 2000448, 2232762, 2656479, 3011314, 3981461, 4628226,
	},
	{
		2,	20,	30,	40,	 62,	  123,	   277,	    393,     634,     2449,    7921,	16038,
		37188,	58559,	72685,	97904,	 139766,  162017,  184816,  238215,  338082,  427895,  505394,	520376,
		599401, 654329, 873792, 1139333, 1252976, 1364439, 1570929, 1640786, 1675714, 1696672, 1710643,
	},
	{
		1,	2,	3,	5,	330,	419,	815,	874,	1103,	1258,	1665,	2650,
		3718,	8194,	30676,	46070,	47498,	50800,	53638,	55848,	59596,	70399,	77355,	96878,
		113637, 124276, 127254, 144112, 161410, 178707, 199464, 206383, 209843, 211918, 213302,
	},
};

/* Quantiles of the number of jobs in a burst: of one GPU, of 2 to 4, of more. */
#define PHILLY_BURST_POINTS 20
static const uint32_t philly_burst_points[PHILLY_BURST_POINTS] = {
	0, 5000, 6000, 7000, 7500, 8000, 8500, 9000, 9250, 9500, 9600, 9700, 9800, 9850, 9900, 9950, 9980, 9990, 9995, 10000,
};
static const uint32_t philly_burst_jobs[3][PHILLY_BURST_POINTS] = {
	{
		1, 1, 1, 1, 1, 2, 2, 3, 4, 6, 8, 11, 24, 58, 90, 215, 384, 532, 664, 1063,
	},
	{
		1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 5, 6, 7, 8, 14, 20, 26, 34, 118,
	},
	{
		1, 1, 1, 1, 1, 1, 2, 2, 2, 3, 4, 4, 5, 6, 6, 8, 10, 11, 13, 18,
	},
};

/* Quantiles of the seconds between two jobs of a burst. */
#define PHILLY_GAP_POINTS 19
static const uint32_t philly_gap_points[PHILLY_GAP_POINTS] = {
	0, 500, 1000, 2000, 3000, 4000, 5000, 6000, 7000, 7500, 8000, 8500, 9000, 9250, 9500, 9700, 9800, 9900, 10000,
};
static const uint32_t philly_gaps_s[PHILLY_GAP_POINTS] = {
	0, 0, 0, 1, 2, 4, 5, 7, 11, 13, 17, 22, 31, 42, 74, 131, 179, 236, 300,
};

/* Jobs submitted in each hour of the day, and on each weekday from Monday; 1000 is the average. */
static const uint32_t philly_hours[24] = {
	1270, 1000, 1126, 1125, 687, 1144, 1699, 2126, 1125, 1019, 1042, 887, 765, 713, 499, 563, 889, 674, 808, 731, 1032, 898, 1154, 1023,
};
static const uint32_t philly_weekdays[7] = {872, 1042, 1153, 1295, 1472, 631, 534};

/* Shares of the virtual clusters in the number of jobs, in millionths. */
#define PHILLY_TENANTS 15
static const uint32_t philly_tenants[PHILLY_TENANTS] = {
	501246, 195642, 121014, 90253, 23515, 18371, 17447, 13824, 8791, 5131, 4547, 97, 49, 36, 36,
};

#endif
