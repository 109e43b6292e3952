#include "share/fare.h"

#define SECOND INT64_C(1000000000)
/* A baseline takes so many samples and a whole window, without any disturbance. A job that does not
 * work for so long is measured when it does. */
enum { SAMPLES = 3 };
#define MEASURE_MOST_NS (20 * SECOND)
/* A job without iterations after this, or with longer ones, is judged by its launches. */
#define PATIENCE_NS (3 * SECOND)
#define LOST_NS (20 * SECOND) /* no iteration ended although it works: they are not found any more */
#define WINDOW_NS (5 * SECOND)
#define SAMPLE_NS (2 * SECOND) /* of launches: over so long at least, since they come in bursts */
#define IDLE_NS (5 * SECOND)   /* a job that launched nothing for so long is not slowed down */

static void measure_anew(struct sw_fare *fare, int64_t now_ns)
{
	fare->phase = SW_FARE_MEASURED;
	fare->samples = 0;
	fare->began_ns = fare->advanced_ns = now_ns;
	fare->baseline_ns = fare->smooth_ns = 0;
	fare->time_milli = 0;
	fare->alone_micro = fare->rate_micro = 0;
	fare->windows = 0;
	fare->window_ns = 0;
}

/* A new sample of the time of an iteration, or 0. */
static int64_t take_sample(struct sw_fare *fare, const struct sw_coordinate_job *job, int64_t now_ns)
{
	int64_t took = 0;
	bool works = job->launches != fare->launches;
	if (!fare->by_launches && job->iterations != fare->iterations) {
		took = job->iteration_ns;
		fare->advanced_ns = now_ns;
	} else if (!fare->by_launches && works && fare->smooth_ns > 0 && now_ns - fare->advanced_ns > 2 * fare->smooth_ns) {
		/* It works on one that already takes longer than any. */
		took = now_ns - fare->advanced_ns;
	} else if (fare->by_launches && job->launches > fare->launches && now_ns - fare->seen_ns >= SAMPLE_NS) {
		took = (now_ns - fare->seen_ns) / (int64_t)(job->launches - fare->launches);
		took = took > 0 ? took : 1;
	}
	fare->iterations = job->iterations;
	if (!fare->by_launches || now_ns - fare->seen_ns >= SAMPLE_NS) {
		fare->launches = job->launches;
		fare->seen_ns = now_ns;
	}
	return took;
}

static void judge(struct sw_fare *fare, int64_t took, bool undisturbed)
{
	fare->smooth_ns = fare->smooth_ns == 0 ? took : (fare->smooth_ns * 7 + took * 3) / 10;
	fare->samples++;
	/* The least that was seen; but what it takes while no job disturbs it is what it takes,
	 * also where that has become more. */
	if (fare->baseline_ns == 0 ? undisturbed : fare->smooth_ns < fare->baseline_ns)
		fare->baseline_ns = fare->smooth_ns;
	else if (undisturbed)
		fare->baseline_ns += (fare->smooth_ns - fare->baseline_ns) / 8;
	if (fare->phase == SW_FARE_MEASURED && fare->samples >= SAMPLES && fare->windows > 0 && fare->baseline_ns > 0)
		fare->phase = SW_FARE_KNOWN;
	if (fare->phase != SW_FARE_KNOWN || fare->baseline_ns <= 0)
		return;
	/* The fresh sample where it is worse: a neighbour is to be stopped soon. Those of launches
	 * tell less, each for itself. */
	int64_t time = took > fare->smooth_ns && !fare->by_launches ? (took + fare->smooth_ns) / 2 : fare->smooth_ns;
	int64_t milli = time > fare->baseline_ns * 100 ? 100000 : time * 1000 / fare->baseline_ns;
	fare->time_milli = (uint32_t)milli;
}

static void count_window(struct sw_fare *fare, const struct sw_coordinate_job *job, bool undisturbed, int64_t now_ns)
{
	fare->undisturbed = fare->undisturbed && undisturbed;
	int64_t passed = now_ns - fare->window_ns;
	if (fare->window_ns != 0 && passed < WINDOW_NS)
		return;
	if (fare->window_ns != 0 && job->launches >= fare->window_launches) {
		fare->rate_micro = (job->launches - fare->window_launches) * 1000000 / (uint64_t)(passed / 1000000) * 1000;
		fare->windows++;
		if (fare->undisturbed || fare->rate_micro > fare->alone_micro)
			fare->alone_micro = fare->rate_micro;
	}
	fare->window_ns = now_ns;
	fare->window_launches = job->launches;
	fare->undisturbed = undisturbed;
}

/* Iterations are followed where there are some and they are short enough to tell something soon. */
static void choose_measure(struct sw_fare *fare, const struct sw_coordinate_job *job, int64_t now_ns)
{
	bool has = job->iterations > 0 && job->iteration_ns <= PATIENCE_NS;
	bool lost = now_ns - fare->advanced_ns >= LOST_NS && now_ns - fare->worked_ns < SECOND;
	bool impatient = lost || (fare->phase == SW_FARE_MEASURED && now_ns - fare->began_ns >= PATIENCE_NS);
	if (fare->by_launches == has && (has || impatient)) {
		fare->by_launches = !has;
		measure_anew(fare, now_ns);
	}
}

/* False: it has not begun to work. */
static bool begin(struct sw_fare *fare, const struct sw_coordinate_job *job, int64_t now_ns)
{
	bool works = job->launches != fare->launches && fare->seen_ns != 0;
	*fare = (struct sw_fare){
		.id = job->id, .iterations = job->iterations, .launches = job->launches, .seen_ns = now_ns, .advanced_ns = now_ns};
	if (works)
		measure_anew(fare, now_ns);
	return works;
}

void sw_fare_look(struct sw_fare *fare, const struct sw_coordinate_job *job, bool undisturbed, int64_t now_ns)
{
	if (job->suspended) {
		/* What it missed is not what it took. */
		*fare = (struct sw_fare){.id = job->id, .iterations = job->iterations, .launches = job->launches, .seen_ns = now_ns};
		return;
	}
	if (fare->phase == SW_FARE_NEW && !begin(fare, job, now_ns))
		return;
	choose_measure(fare, job, now_ns);
	if (fare->phase == SW_FARE_MEASURED && !undisturbed)
		measure_anew(fare, now_ns);
	if (job->launches != fare->worked_launches) {
		fare->worked_launches = job->launches;
		fare->worked_ns = now_ns;
	} else if (now_ns - fare->worked_ns >= IDLE_NS) {
		fare->time_milli = 0;
	}
	int64_t took = take_sample(fare, job, now_ns);
	count_window(fare, job, undisturbed, now_ns);
	if (took > 0)
		judge(fare, took, undisturbed);
	if (fare->phase == SW_FARE_MEASURED && now_ns - fare->began_ns >= MEASURE_MOST_NS)
		fare->phase = SW_FARE_NEW;
}

uint32_t sw_fare_rate_milli(const struct sw_fare *fare)
{
	if (fare->alone_micro == 0 || fare->rate_micro == 0)
		return 0;
	uint64_t milli = fare->rate_micro / (fare->alone_micro / 1000 + 1);
	return (uint32_t)(milli < 1 ? 1 : milli > 10000 ? 10000 : milli);
}
