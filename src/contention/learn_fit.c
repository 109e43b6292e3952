/* The regression: weighted ridge on ln(measured / predicted), one for each kind of set.
 *
 * Columns: a constant (what sharing costs beyond the prediction) and ln of the prediction (it
 * exaggerates, or the opposite). Each resource is one, as the product of both sides' use. So is the
 * time that they keep the GPU busy. Each model has two: as the one that suffers, and as a
 * neighbour. The penalty pulls all towards 0, where the prediction stands as it is.
 *
 * Robustness. Others learn from an observation only to within a stray (twice that, if it was made
 * again) of what all others predict for it. One that was made three times, or twice with much the
 * same outcome, is believed of its own set as it is. "What all others predict" comes from the same
 * fit by the leave-one-out identity (residual / (1 - leverage)). Starting from the predictions of
 * the profiles, that is repeated. Measurements that agree carry each other away from a wrong
 * prediction; one that stands alone cannot.
 */
#include <stdio.h>
#include <string.h>

#include "contention/learn_state.h"

/* Noise against what is to be learned, as variances: steps vary by 5 %, effects by 15 %. */
#define PENALTY 0.1
#define STRAY 0.2
/* Each round lets beliefs go one stray further from the profiles: enough for predictions that are
 * wrong by a factor of 7. */
#define ROUNDS 10

/* For the range that slowdowns have; exact to the last digits, and the same everywhere
 * because it is only + - * /. */
static double log_of(double value)
{
	double twos = 0;
	while (value > 1.5) {
		value *= 0.5;
		twos++;
	}
	while (value < 0.75) {
		value *= 2;
		twos--;
	}
	double t = (value - 1) / (value + 1), square = t * t, sum = 0; /* |t| <= 0.2 */
	for (int k = 25; k > 0; k -= 2)
		sum = sum * square + 1.0 / k;
	return twos * 0.693147180559945309417 + 2 * t * sum;
}

double sw_learn_exp(double value)
{
	double limit = value > 20 ? 20 : value < -20 ? -20 : value, sum = 1, scale = 1;
	while (limit > 0.35) {
		limit -= 0.693147180559945309417;
		scale *= 2;
	}
	while (limit < -0.35) {
		limit += 0.693147180559945309417;
		scale *= 0.5;
	}
	for (int k = 16; k > 0; k--)
		sum = 1 + sum * limit / k;
	return scale * sum;
}

/* Rows */

static uint32_t column_of(const struct sw_learn_fit *fit, const char *name)
{
	uint32_t low = 0, high = fit->named;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		int order = strcmp(name, fit->names[middle]);
		if (order == 0)
			return SHARED_COLUMNS + 2 * middle;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return COLUMNS_MAX;
}

static double at_most_one(double value)
{
	return value < 1 ? value : 1;
}

/* What was not measured explains nothing: taken as alike. */
static uint32_t busy_of(const struct sw_profile *profile)
{
	return profile->busy_known ? profile->busy_milli : 1000;
}

static void write_row(const struct sw_learn *learn, const struct sw_learn_fit *fit, const struct sw_learn_set *set, uint32_t prior_milli,
		      double row[COLUMNS_MAX])
{
	const struct sw_profile *job = sw_profiles_find(learn->profiles, set->names[0]);
	uint32_t use_milli[SW_USE_COUNT] = {0}, busy_milli = 0;
	memset(row, 0, COLUMNS_MAX * sizeof *row);
	for (uint32_t i = 0; i < set->count; i++) {
		const struct sw_profile *other = sw_profiles_find(learn->profiles, set->names[i]);
		uint32_t column = column_of(fit, set->names[i]);
		if (column < COLUMNS_MAX)
			row[column + (i > 0 ? 1 : 0)] += 1;
		if (i == 0)
			continue;
		busy_milli += busy_of(other);
		for (int r = 0; r < SW_USE_COUNT; r++)
			use_milli[r] += other->use_milli[r];
	}
	row[0] = 1;
	row[1] = log_of(prior_milli / 1000.0);
	row[2] = busy_of(job) / 1000.0 * at_most_one(busy_milli / 1000.0);
	for (int r = 0; r < SW_USE_COUNT; r++)
		row[3 + r] = job->use_milli[r] / 1000.0 * at_most_one(use_milli[r] / 1000.0);
}

static void name_model(struct sw_learn_fit *fit, const char *name)
{
	uint32_t at = 0;
	while (at < fit->named && strcmp(fit->names[at], name) < 0)
		at++;
	if (at == NAMED_MAX || (at < fit->named && strcmp(fit->names[at], name) == 0))
		return;
	if (fit->named < NAMED_MAX)
		fit->named++;
	memmove(fit->names[at + 1], fit->names[at], (fit->named - at - 1) * sizeof fit->names[0]);
	snprintf(fit->names[at], sizeof fit->names[at], "%s", name);
}

/* Solving: the matrix is L D L', in place, without square roots. */

static void decompose(struct sw_learn *learn, uint32_t columns)
{
	for (uint32_t j = 0; j < columns; j++) {
		double *row = learn->matrix[j];
		for (uint32_t i = 0; i < j; i++) {
			double sum = row[i];
			for (uint32_t k = 0; k < i; k++)
				sum -= row[k] * learn->matrix[i][k];
			row[i] = sum; /* L times D, until the row is complete */
		}
		for (uint32_t i = 0; i < j; i++) {
			double factor = row[i] / learn->matrix[i][i];
			row[j] -= factor * row[i];
			row[i] = factor;
		}
	}
}

static void solve_lower(const struct sw_learn *learn, uint32_t columns, double *vector)
{
	for (uint32_t j = 0; j < columns; j++)
		for (uint32_t i = 0; i < j; i++)
			vector[j] -= learn->matrix[j][i] * vector[i];
}

static void solve(const struct sw_learn *learn, uint32_t columns, double *vector)
{
	solve_lower(learn, columns, vector);
	for (uint32_t j = columns; j-- > 0;) {
		vector[j] /= learn->matrix[j][j];
		for (uint32_t i = j + 1; i < columns; i++)
			vector[j] -= learn->matrix[i][j] * vector[i];
	}
}

static double times_row(const double *row, const double *vector, uint32_t columns)
{
	double sum = 0;
	for (uint32_t c = 0; c < columns; c++)
		sum += row[c] * vector[c];
	return sum;
}

/* The observations of one kind, which stand together. */
struct work {
	struct sw_learn_fit *fit;
	struct sw_learn_observation *seen;
	uint32_t count, columns;
	double measured[SW_LEARN_SETS_MAX]; /* ln(value / prediction) */
	double weight[SW_LEARN_SETS_MAX];
	double leverage[SW_LEARN_SETS_MAX];
};

static double within(double value, double centre, double reach)
{
	return value > centre + reach ? centre + reach : value < centre - reach ? centre - reach : value;
}

static bool is_settled(const struct sw_learn_observation *seen)
{
	uint64_t low = seen->slow_milli[0], high = seen->slow_milli[1];
	if (seen->kept != 2)
		return seen->kept > 2;
	return low * (1000 + SW_LEARN_STRAY_MILLI) >= high * 1000 && high * (1000 + SW_LEARN_STRAY_MILLI) >= low * 1000;
}

/* Takes in what was measured when all others say `centre`. */
static void take_in(const struct work *work, uint32_t i, double centre)
{
	struct sw_learn_observation *seen = &work->seen[i];
	seen->lesson = within(work->measured[i], centre, seen->kept > 1 ? 2 * STRAY : STRAY);
	seen->believed = is_settled(seen) ? work->measured[i] : seen->lesson;
}

static void prepare(struct sw_learn *learn, struct work *work)
{
	for (uint32_t i = 0; i < work->count; i++) {
		double worth = sw_learn_worth(&work->seen[i]);
		uint32_t prior_milli = sw_learn_prior(learn, &work->seen[i].set).slow_milli;
		write_row(learn, work->fit, &work->seen[i].set, prior_milli, learn->rows[i]);
		work->weight[i] = worth / (worth + 1);
		work->measured[i] = log_of((double)sw_learn_median(&work->seen[i]) / prior_milli);
		take_in(work, i, 0);
	}
	for (uint32_t j = 0; j < work->columns; j++) {
		memset(learn->matrix[j], 0, sizeof learn->matrix[j]);
		learn->matrix[j][j] = PENALTY;
	}
	for (uint32_t i = 0; i < work->count; i++)
		for (uint32_t j = 0; j < work->columns; j++)
			for (uint32_t k = 0; learn->rows[i][j] != 0 && k <= j; k++)
				learn->matrix[j][k] += work->weight[i] * learn->rows[i][j] * learn->rows[i][k];
	decompose(learn, work->columns);
	for (uint32_t i = 0; i < work->count; i++) {
		double vector[COLUMNS_MAX];
		memcpy(vector, learn->rows[i], sizeof vector);
		solve_lower(learn, work->columns, vector);
		work->leverage[i] = 0;
		for (uint32_t c = 0; c < work->columns; c++)
			work->leverage[i] += work->weight[i] * vector[c] * vector[c] / learn->matrix[c][c];
	}
}

static void regress(struct sw_learn *learn, struct work *work)
{
	double *coefficients = work->fit->coefficients;
	memset(coefficients, 0, sizeof work->fit->coefficients);
	for (uint32_t i = 0; i < work->count; i++)
		for (uint32_t c = 0; c < work->columns; c++)
			coefficients[c] += work->weight[i] * learn->rows[i][c] * work->seen[i].lesson;
	solve(learn, work->columns, coefficients);
	for (uint32_t i = 0; i < work->count; i++) {
		double residual = work->seen[i].lesson - times_row(learn->rows[i], coefficients, work->columns);
		work->seen[i].from_others = work->seen[i].lesson - residual / (1 - work->leverage[i]);
	}
}

void sw_learn_refit(struct sw_learn *learn, enum kind kind)
{
	struct work work = {.fit = &learn->fits[kind]};
	uint32_t first = 0;
	while (first < learn->count && learn->seen[first].set.kind < kind)
		first++;
	work.seen = &learn->seen[first];
	while (first + work.count < learn->count && work.seen[work.count].set.kind == kind)
		work.count++;
	work.fit->stale = false;
	work.fit->known = work.count;
	work.fit->named = 0;
	for (uint32_t i = 0; i < work.count; i++)
		for (uint32_t n = 0; n < work.seen[i].set.count; n++)
			name_model(work.fit, work.seen[i].set.names[n]);
	work.columns = SHARED_COLUMNS + 2 * work.fit->named;
	prepare(learn, &work);
	regress(learn, &work);
	for (int round = 0; round < ROUNDS; round++) {
		for (uint32_t i = 0; i < work.count; i++)
			take_in(&work, i, work.seen[i].from_others);
		regress(learn, &work);
	}
}

double sw_learn_correction(const struct sw_learn *learn, const struct sw_learn_set *set, uint32_t prior_milli)
{
	const struct sw_learn_fit *fit = &learn->fits[set->kind];
	double row[COLUMNS_MAX];
	write_row(learn, fit, set, prior_milli, row);
	return times_row(row, fit->coefficients, SHARED_COLUMNS + 2 * fit->named);
}
