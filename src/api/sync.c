/* Syncs, answers, orders and accounts of runs from JSON. Their tables are sync_tables.c, writing
 * them is sync_write.c. */
#include "api/sync.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/pieces.h"
#include "api/sync_tables.h"

#define UNREAD_CODE 125 /* as of a run that could not be started */
/* Commas and brackets of all runs and samples of a node, with all of their fields and some to
 * come. */
#define SYNC_PARTS_MOST ((size_t)40 * (SW_SYNC_RUNS_MAX + SW_SYNC_SAMPLES_MAX))
/* Bytes of text that are parsed at one go: of a member of a list or a field, of an inventory.
 * Those at all their bounds, every byte escaped, have less. */
#define PIECE_BYTES_MAX ((size_t)64 << 10)
#define INVENTORY_BYTES_MAX ((size_t)512 << 10)

#define DECODE(table, object, target) sw_decode_fields(decoder, object, (table).fields, (table).count, target)

/* ---- decoding */

/* Opens a document and allocates the struct that is made of it; on failure everything is freed. */
static int begin(struct sw_decoder *decoder, const char *text, size_t size, size_t limit, size_t struct_size, void **ret_struct)
{
	decoder->decoded = calloc(1, sizeof *decoder->decoded);
	if (decoder->decoded == NULL)
		return sw_decoder_out_of_memory(decoder);
	int r = sw_decoder_open(decoder, text, size, limit);
	void *made = r == 0 ? sw_decoded_alloc(decoder->decoded, 1, struct_size) : NULL;
	if (r == 0 && made == NULL)
		r = sw_decoder_out_of_memory(decoder);
	if (r < 0) {
		sw_decoded_free(decoder->decoded);
		return r;
	}
	*ret_struct = made;
	return 0;
}

/* What could not be read of a list of runs or wishes. */
struct spoiled {
	struct sw_unread *items;
	size_t count, room;
};

static int note_unread(struct sw_decoder *decoder, struct spoiled *spoiled, const struct sw_unread *unread)
{
	if (spoiled->count == spoiled->room) {
		size_t room = spoiled->room > 0 ? spoiled->room * 2 : 8;
		struct sw_unread *grown = sw_decoded_alloc(decoder->decoded, room, sizeof *grown);
		if (grown == NULL)
			return sw_decoder_out_of_memory(decoder);
		if (spoiled->count > 0)
			memcpy(grown, spoiled->items, spoiled->count * sizeof *grown);
		spoiled->items = grown;
		spoiled->room = room;
	}
	spoiled->items[spoiled->count++] = *unread;
	return 0;
}

static int spoil(struct sw_decoder *decoder, json_t *value, const char *why, void *context)
{
	struct sw_unread unread = {.why = why};
	struct sw_err *outer = decoder->err;
	decoder->err = NULL;
	unread.has_id = value != NULL && DECODE(sw_id_table, value, &unread) == 0;
	decoder->err = outer;
	if (!unread.has_id)
		unread.id = (struct sw_run_id){0};
	return note_unread(decoder, context, &unread);
}

/* A place in a list, by the run that stands there. */
struct placed {
	struct sw_run_id id;
	size_t place;
};

static int compare_placed(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;
	int order = sw_run_id_compare(x->id, y->id);
	return order != 0 ? order : x->place < y->place ? -1 : x->place > y->place;
}

/* A run stands in a list once. Of several the first is taken; the others count as not readable.
 * The members, `size` bytes each, start with the run's id. */
static int drop_twins(struct sw_decoder *decoder, const char *name, void *items, size_t *count, size_t size, struct spoiled *spoiled)
{
	struct placed *order = sw_decoded_alloc(decoder->decoded, *count, sizeof *order);
	bool *twin = sw_decoded_alloc(decoder->decoded, *count, sizeof *twin);
	if (order == NULL || twin == NULL)
		return sw_decoder_out_of_memory(decoder);
	for (size_t i = 0; i < *count; i++) {
		memcpy(&order[i].id, (const char *)items + i * size, sizeof order[i].id);
		order[i].place = i;
	}
	if (*count > 1)
		qsort(order, *count, sizeof *order, compare_placed);
	int r = 0;
	for (size_t i = 1; r == 0 && i < *count; i++) {
		if (sw_run_id_compare(order[i - 1].id, order[i].id) != 0)
			continue;
		twin[order[i].place] = true;
		char *why = sw_decoded_alloc(decoder->decoded, 100, 1);
		if (why == NULL)
			return sw_decoder_out_of_memory(decoder);
		snprintf(why, 100, "'%s' has job %llu, epoch %u twice", name, (unsigned long long)order[i].id.job, order[i].id.epoch);
		r = note_unread(decoder, spoiled, &(struct sw_unread){.id = order[i].id, .has_id = true, .why = why});
	}
	size_t kept = 0;
	for (size_t i = 0; r == 0 && i < *count; i++) {
		if (twin[i])
			continue;
		if (kept != i)
			memcpy((char *)items + kept * size, (const char *)items + i * size, size);
		kept++;
	}
	*count = r == 0 ? kept : *count;
	return r;
}
_Static_assert(offsetof(struct sw_sync_run, id) == 0 && offsetof(struct sw_want, id) == 0, "drop_twins() finds the id first");

/* A list of runs or wishes, each read by itself. */
static int decode_runs(struct sw_decoder *decoder, const struct sw_members *runs, struct spoiled *spoiled, void **ret_items,
		       size_t *ret_count)
{
	int r = sw_decode_each(decoder, decoder->decoded->root, runs, ret_items, ret_count);
	return r < 0 ? r : drop_twins(decoder, runs->name, *ret_items, ret_count, runs->size, spoiled);
}

static int decode_gpu(struct sw_decoder *decoder, json_t *value, void *target)
{
	struct sw_sync_gpu *gpu = target;
	gpu->name = "";
	int r = DECODE(sw_gpu_table, value, gpu);
	/* Lists of GPUs have commas between them, and no GPU has a name that takes more room as
	 * JSON than as text. */
	for (const char *at = r == 0 ? gpu->uuid : ""; *at != '\0'; at++)
		if (*at <= ' ' || *at > '~' || strchr(",\"\\", *at) != NULL)
			return sw_decoder_refuse(decoder, "uuid", json_object_get(value, "uuid"),
						 "printable characters without commas or quotes");
	return r;
}

static int decode_inventory(struct sw_decoder *decoder, json_t *value, void *target)
{
	struct sw_sync *sync = target;
	struct sw_sync_inventory *inventory = sw_decoded_alloc(decoder->decoded, 1, sizeof *inventory);
	if (inventory == NULL)
		return sw_decoder_out_of_memory(decoder);
	size_t mark = sw_decoder_enter(decoder, "inventory", -1);
	int r = DECODE(sw_inventory_table, value, inventory);
	void *gpus = NULL;
	if (r == 0)
		r = sw_decode_list(decoder, value, "gpus", SW_SYNC_GPUS_MAX, sizeof(struct sw_sync_gpu), decode_gpu, &gpus,
				   &inventory->gpu_count);
	inventory->gpus = gpus;
	sw_decoder_leave(decoder, mark);
	if (r == 0)
		sync->inventory = inventory;
	return r;
}

/* What the node has. One that cannot be read is the node's own trouble: its runs are heard all
 * the same. */
static int decode_readable_inventory(struct sw_decoder *decoder, json_t *value, struct sw_sync *sync)
{
	struct sw_err *outer = decoder->err, err = {0};
	decoder->err = &err;
	int r = decode_inventory(decoder, value, sync);
	decoder->err = outer;
	decoder->place[0] = '\0';
	if (r == SW_ENOMEM)
		return sw_decoder_out_of_memory(decoder);
	if (r == 0)
		return 0;
	char *why = sw_decoded_alloc(decoder->decoded, sizeof err.detail, 1);
	if (why == NULL)
		return sw_decoder_out_of_memory(decoder);
	memcpy(why, err.detail, sizeof err.detail);
	sync->inventory_unread = why;
	return 0;
}

static int decode_run(struct sw_decoder *decoder, json_t *value, void *target)
{
	struct sw_sync_run *run = target;
	bool vital = false;
	run->reason = "";
	int r = sw_decode_readable(decoder, value, sw_run_table.fields, sw_run_table.count, run, &run->unread, &vital);
	/* That it is over counts, whatever else could not be read. It must not look like a good
	 * end. */
	if (r == 0 && vital && run->state == SW_RUN_EXITED) {
		run->code = UNREAD_CODE;
		run->signal = 0;
		run->reason = SW_REASON_REPORT;
		run->detail = run->unread;
	}
	return r;
}

static int decode_sample(struct sw_decoder *decoder, json_t *value, void *target)
{
	struct sw_sync_sample *sample = target;
	int r = DECODE(sw_sample_table, value, sample);
	json_t *job = json_object_get(value, "job");
	if (r < 0 || job == NULL || json_is_null(job))
		return r;
	sample->has_run = true;
	return DECODE(sw_sample_run_table, value, sample);
}

static int decode_shut(struct sw_decoder *decoder, json_t *value, void *target)
{
	return DECODE(sw_shut_table, value, target);
}

static int decode_stranger(struct sw_decoder *decoder, json_t *value, void *target)
{
	return DECODE(sw_stranger_table, value, target);
}

/* ---- a sync, piece by piece */

/* A list of a sync, as far as it has been read. */
struct listed {
	struct sw_members of;
	bool is_there;
	char *items;
	size_t count, room;
	size_t total; /* members of the list, readable or not */
};
enum { RUNS = 0, SAMPLES, SHUT, STRANGERS, LISTS };

struct sw_sync_reader {
	struct sw_decoder decoder;
	struct sw_pieces pieces;
	struct listed lists[LISTS];
	struct spoiled spoiled;
	struct sw_sync *sync; /* owns what was decoded, as decoder.decoded */
	json_t *head;	      /* the fields of the sync itself */
	bool has_inventory;
};

static const char *const list_names[LISTS + 1] = {"jobs", "samples", "shut", "strangers", NULL};

void sw_sync_reader_free(struct sw_sync_reader *reader)
{
	if (reader == NULL)
		return;
	if (reader->decoder.decoded != NULL)
		sw_decoded_free(reader->decoder.decoded);
	json_decref(reader->head);
	free(reader);
}

int sw_sync_reader_new(const char *text, size_t size, struct sw_sync_reader **ret_reader, struct sw_err *err)
{
	static const char what[] = "cannot read the sync";
	if (size > SW_SYNC_BYTES_MAX) {
		sw_err_set(err, SW_ELIMIT, "%s", what);
		sw_err_detail(err, "it has %zu bytes, expected at most %zu", size, SW_SYNC_BYTES_MAX);
		return SW_ELIMIT;
	}
	SW_CLEANUP(sw_sync_reader_freep) struct sw_sync_reader *reader = calloc(1, sizeof *reader);
	if (reader != NULL) {
		reader->decoder = (struct sw_decoder){.what = what, .copies = true, .decoded = calloc(1, sizeof *reader->decoder.decoded)};
		reader->pieces =
			(struct sw_pieces){.what = what, .text = text, .size = size, .lists = list_names, .parts_most = SYNC_PARTS_MOST};
		reader->head = json_object();
	}
	if (reader != NULL && reader->decoder.decoded != NULL)
		reader->sync = sw_decoded_alloc(reader->decoder.decoded, 1, sizeof *reader->sync);
	if (reader == NULL || reader->sync == NULL || reader->head == NULL) {
		sw_err_set(err, SW_ENOMEM, "%s", what);
		sw_err_detail(err, "out of memory");
		return SW_ENOMEM;
	}
	struct listed *lists = reader->lists;
	lists[RUNS].of = (struct sw_members){.most = SW_SYNC_RUNS_MAX, .size = sizeof(struct sw_sync_run), .member = decode_run};
	lists[RUNS].of.spoiled = spoil;
	lists[RUNS].of.context = &reader->spoiled;
	lists[SAMPLES].of =
		(struct sw_members){.most = SW_SYNC_SAMPLES_MAX, .size = sizeof(struct sw_sync_sample), .member = decode_sample};
	lists[SHUT].of = (struct sw_members){.most = SW_SYNC_GPUS_MAX, .size = sizeof(struct sw_sync_shut), .member = decode_shut};
	lists[STRANGERS].of =
		(struct sw_members){.most = SW_SYNC_STRANGERS_MAX, .size = sizeof(struct sw_sync_stranger), .member = decode_stranger};
	for (size_t l = 0; l < LISTS; l++)
		lists[l].of.name = list_names[l];
	*ret_reader = SW_TAKE(reader);
	return 0;
}

static struct listed *find_list(struct sw_sync_reader *reader, const char *name)
{
	for (size_t l = 0; l < LISTS; l++)
		if (strcmp(reader->lists[l].of.name, name) == 0)
			return &reader->lists[l];
	return NULL;
}

/* The piece as JSON. It is refused as a whole where it is none. */
static int parse_piece(struct sw_decoder *decoder, const struct sw_piece *piece, json_t **ret_value)
{
	json_error_t error;
	json_t *value = json_loadb(piece->text, piece->size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
	if (value != NULL) {
		*ret_value = value;
		return 0;
	}
	if (json_error_code(&error) == json_error_out_of_memory)
		return sw_decoder_out_of_memory(decoder);
	sw_err_set(decoder->err, SW_EINPUT, "%s", decoder->what);
	if (piece->kind == SW_PIECE_ELEMENT)
		sw_err_detail(decoder->err, "it is not JSON: '%s[%zu]', line %d of that, column %d: %s", piece->name, piece->index,
			      error.line, error.column, error.text);
	else
		sw_err_detail(decoder->err, "it is not JSON: '%s', line %d of that, column %d: %s", piece->name, error.line, error.column,
			      error.text);
	return SW_EINPUT;
}

/* "'jobs[3]' has 70000 bytes, expected at most 65536", kept; NULL: out of memory. */
static const char *say_long(struct sw_decoder *decoder, const char *name, long index, size_t size, size_t most)
{
	char *why = sw_decoded_alloc(decoder->decoded, 120, 1);
	char place[24] = "";
	if (index >= 0)
		snprintf(place, sizeof place, "[%ld]", index);
	if (why != NULL)
		snprintf(why, 120, "'%.40s%s' has %zu bytes, expected at most %zu", name, place, size, most);
	return why;
}

static int grow(struct sw_decoder *decoder, struct listed *list)
{
	size_t room = list->room > 0 ? list->room * 2 : 16;
	if (room > list->of.most)
		room = list->of.most;
	char *grown = sw_decoded_alloc(decoder->decoded, room, list->of.size);
	if (grown == NULL)
		return sw_decoder_out_of_memory(decoder);
	if (list->count > 0)
		memcpy(grown, list->items, list->count * list->of.size);
	list->items = grown;
	list->room = room;
	return 0;
}

static int read_element(struct sw_sync_reader *reader, const struct sw_piece *piece)
{
	struct sw_decoder *decoder = &reader->decoder;
	struct listed *list = find_list(reader, piece->name);
	assert(list != NULL);
	if (list->total++ >= list->of.most)
		return 0;
	if (piece->size > PIECE_BYTES_MAX) {
		const char *why = say_long(decoder, list->of.name, (long)piece->index, piece->size, PIECE_BYTES_MAX);
		if (why == NULL)
			return sw_decoder_out_of_memory(decoder);
		return list->of.spoiled != NULL ? list->of.spoiled(decoder, NULL, why, list->of.context) : 0;
	}
	json_t *value = NULL;
	bool is_good = false;
	int r = list->count == list->room ? grow(decoder, list) : 0;
	if (r == 0)
		r = parse_piece(decoder, piece, &value);
	if (r == 0)
		r = sw_decode_member_at(decoder, value, &list->of, (long)piece->index, list->items + list->count * list->of.size, &is_good);
	json_decref(value);
	list->count += is_good;
	return r;
}

static int refuse_twice(struct sw_decoder *decoder, const char *name)
{
	sw_err_set(decoder->err, SW_EINPUT, "%s", decoder->what);
	sw_err_detail(decoder->err, "it is not JSON: it has '%s' twice", name);
	return SW_EINPUT;
}

static int begin_list(struct sw_sync_reader *reader, const char *name)
{
	struct listed *list = find_list(reader, name);
	assert(list != NULL);
	if (list->is_there || json_object_get(reader->head, name) != NULL)
		return refuse_twice(&reader->decoder, name);
	list->is_there = true;
	return 0;
}

static int read_inventory(struct sw_sync_reader *reader, const struct sw_piece *piece)
{
	struct sw_decoder *decoder = &reader->decoder;
	if (reader->has_inventory)
		return refuse_twice(decoder, piece->name);
	reader->has_inventory = true;
	if (piece->size > INVENTORY_BYTES_MAX) {
		reader->sync->inventory_unread = say_long(decoder, piece->name, -1, piece->size, INVENTORY_BYTES_MAX);
		return reader->sync->inventory_unread != NULL ? 0 : sw_decoder_out_of_memory(decoder);
	}
	json_t *value = NULL;
	int r = parse_piece(decoder, piece, &value);
	if (r == 0 && !json_is_null(value))
		r = decode_readable_inventory(decoder, value, reader->sync);
	json_decref(value);
	return r;
}

/* A field of the sync itself, kept until all are there. A list of another kind than a list is
 * refused; what no table has is not looked at. */
static int read_field(struct sw_sync_reader *reader, const struct sw_piece *piece)
{
	struct sw_decoder *decoder = &reader->decoder;
	bool is_list = find_list(reader, piece->name) != NULL, is_field = false;
	for (size_t f = 0; f < sw_sync_table.count; f++)
		is_field = is_field || strcmp(sw_sync_table.fields[f].name, piece->name) == 0;
	if (!is_list && !is_field)
		return 0;
	if (json_object_get(reader->head, piece->name) != NULL || (is_list && find_list(reader, piece->name)->is_there))
		return refuse_twice(decoder, piece->name);
	if (piece->size > PIECE_BYTES_MAX) {
		const char *why = say_long(decoder, piece->name, -1, piece->size, PIECE_BYTES_MAX);
		if (why == NULL)
			return sw_decoder_out_of_memory(decoder);
		sw_err_set(decoder->err, SW_EINPUT, "%s", decoder->what);
		sw_err_detail(decoder->err, "%s", why);
		return SW_EINPUT;
	}
	json_t *value = NULL;
	int r = parse_piece(decoder, piece, &value);
	if (r < 0)
		return r;
	if (is_list && !json_is_null(value)) {
		r = sw_decoder_refuse(decoder, piece->name, value, "a list");
		json_decref(value);
		return r;
	}
	return json_object_set_new(reader->head, piece->name, value) == 0 ? 0 : sw_decoder_out_of_memory(decoder);
}

/* All pieces have come. */
static int complete(struct sw_sync_reader *reader)
{
	struct sw_decoder *decoder = &reader->decoder;
	struct sw_sync *sync = reader->sync;
	struct listed *runs = &reader->lists[RUNS], *shut = &reader->lists[SHUT], *strangers = &reader->lists[STRANGERS];
	int r = DECODE(sw_sync_table, reader->head, sync);
	if (r == 0 && runs->total > runs->of.most) {
		char *why = sw_decoded_alloc(decoder->decoded, 120, 1);
		if (why == NULL)
			return sw_decoder_out_of_memory(decoder);
		snprintf(why, 120, "'%s' is a list of %zu, expected at most %zu", runs->of.name, runs->total, runs->of.most);
		r = spoil(decoder, NULL, why, &reader->spoiled);
	}
	if (r == 0)
		r = drop_twins(decoder, runs->of.name, runs->items, &runs->count, runs->of.size, &reader->spoiled);
	if (r < 0)
		return r;
	sync->runs = (struct sw_sync_run *)(void *)runs->items;
	sync->run_count = runs->count;
	sync->unread = reader->spoiled.items;
	sync->unread_count = reader->spoiled.count;
	sync->samples = (struct sw_sync_sample *)(void *)reader->lists[SAMPLES].items;
	sync->sample_count = reader->lists[SAMPLES].count;
	/* Which GPUs take no jobs, where the agent knows. */
	sync->looked = shut->is_there;
	if (sync->looked) {
		sync->shut = (struct sw_sync_shut *)(void *)shut->items;
		sync->shut_count = shut->count;
		sync->strangers = (struct sw_sync_stranger *)(void *)strangers->items;
		sync->stranger_count = strangers->count;
	}
	sync->owner = decoder->decoded;
	return 0;
}

int sw_sync_reader_step(struct sw_sync_reader *reader, struct sw_sync **ret_sync, struct sw_err *err)
{
	struct sw_piece piece;
	reader->decoder.err = err;
	int r = sw_pieces_next(&reader->pieces, &piece, err);
	if (r < 0)
		return r;
	switch (piece.kind) {
	case SW_PIECE_NONE:
		return 0;
	case SW_PIECE_LIST:
		return begin_list(reader, piece.name);
	case SW_PIECE_ELEMENT:
		return read_element(reader, &piece);
	case SW_PIECE_MEMBER:
		return strcmp(piece.name, "inventory") == 0 ? read_inventory(reader, &piece) : read_field(reader, &piece);
	case SW_PIECE_END:
		break;
	}
	r = complete(reader);
	if (r < 0)
		return r;
	reader->decoder.decoded = NULL; /* the sync owns it */
	*ret_sync = SW_TAKE(reader->sync);
	return 0;
}

size_t sw_sync_reader_at(const struct sw_sync_reader *reader)
{
	return reader->pieces.at;
}

int sw_sync_decode(const char *text, size_t size, struct sw_sync **ret_sync, struct sw_err *err)
{
	SW_CLEANUP(sw_sync_reader_freep) struct sw_sync_reader *reader = NULL;
	struct sw_sync *sync = NULL;
	int r = sw_sync_reader_new(text, size, &reader, err);
	while (r == 0 && sync == NULL)
		r = sw_sync_reader_step(reader, &sync, err);
	if (r == 0)
		*ret_sync = sync;
	return r;
}

void sw_sync_free(struct sw_sync *sync)
{
	if (sync != NULL)
		sw_decoded_free(sync->owner);
}

void sw_run_spec_defaults(struct sw_run_spec *spec)
{
	memset(spec, 0, sizeof *spec);
	spec->umask = 022;
	spec->log_limit_bytes = UINT64_C(64) << 20;
	spec->stop_signal = 15; /* SIGTERM, on every Linux */
	spec->grace_ms = 30000;
}

static size_t texts_size(const struct sw_texts *texts)
{
	size_t size = 0;
	for (size_t i = 0; i < texts->count; i++)
		size += sw_json_string_size(texts->items[i]) + 1;
	return size;
}

size_t sw_run_spec_size(const struct sw_run_spec *spec)
{
	const char *const texts[] = {spec->name, spec->workdir, spec->stdout_path, spec->stderr_path};
	size_t size = texts_size(&spec->argv) + texts_size(&spec->env);
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		size += texts[i] != NULL ? sw_json_string_size(texts[i]) : 0;
	/* Every other field is a number or a word. */
	for (size_t i = 0; i < sw_spec_table.count; i++)
		size += strlen(sw_spec_table.fields[i].name) + 32;
	return size;
}

static int decode_spec(struct sw_decoder *decoder, json_t *value, struct sw_run_spec *spec)
{
	sw_run_spec_defaults(spec);
	int r = DECODE(sw_spec_table, value, spec);
	if (r < 0)
		return r;
	if (spec->argv.items[0][0] == '\0')
		return sw_decoder_refuse(decoder, "argv", json_object_get(value, "argv"), "a command as its first text");
	for (size_t i = 0; i < spec->env.count; i++) {
		const char *equals = strchr(spec->env.items[i], '=');
		if (equals == NULL || equals == spec->env.items[i]) {
			size_t mark = sw_decoder_enter(decoder, "env", (long)i);
			r = sw_decoder_refuse(decoder, NULL, json_array_get(json_object_get(value, "env"), i), "NAME=VALUE");
			sw_decoder_leave(decoder, mark);
			return r;
		}
	}
	return 0;
}

static int decode_want(struct sw_decoder *decoder, json_t *value, void *target)
{
	struct sw_want *want = target;
	want->grace_ms = -1;
	const char *why = NULL;
	bool vital = false;
	int r = DECODE(sw_want_head_table, value, want);
	/* What is only for people spoils no order. */
	if (r == 0)
		r = sw_decode_readable(decoder, value, sw_want_words_table.fields, sw_want_words_table.count, want, &why, &vital);
	if (r < 0)
		return r;
	/* To stop or to forget a run, no more is needed than to know which: a field that cannot
	 * be read has its default. */
	if (want->want == SW_WANT_STOP || want->want == SW_WANT_FORGET)
		return sw_decode_readable(decoder, value, sw_want_table.fields, sw_want_table.count, want, &why, &vital);
	r = DECODE(sw_want_table, value, want);
	json_t *body = r == 0 ? json_object_get(value, "spec") : NULL;
	if (body == NULL || json_is_null(body))
		return r;
	struct sw_run_spec *spec = sw_decoded_alloc(decoder->decoded, 1, sizeof *spec);
	if (spec == NULL)
		return sw_decoder_out_of_memory(decoder);
	size_t mark = sw_decoder_enter(decoder, "spec", -1);
	r = decode_spec(decoder, body, spec);
	sw_decoder_leave(decoder, mark);
	want->spec = spec;
	return r;
}

int sw_answer_decode(const char *text, size_t size, struct sw_answer_message **ret_answer, struct sw_err *err)
{
	struct sw_decoder context = {.what = "cannot read the controller's answer", .err = err}, *decoder = &context;
	void *made = NULL;
	int r = begin(decoder, text, size, SW_ANSWER_BYTES_MAX, sizeof(struct sw_answer_message), &made);
	if (r < 0)
		return r;
	struct sw_answer_message *answer = made;
	assert(answer != NULL);
	answer->owner = decoder->decoded;
	void *wants = NULL;
	struct spoiled spoiled = {0};
	const struct sw_members members = {.name = "wants",
					   .most = SW_SYNC_WANTS_MAX,
					   .size = sizeof *answer->wants,
					   .member = decode_want,
					   .spoiled = spoil,
					   .context = &spoiled};
	r = DECODE(sw_answer_table, decoder->decoded->root, answer);
	/* No list at all is no word that nothing is wanted. */
	if (r == 0 && !json_is_array(json_object_get(decoder->decoded->root, "wants")))
		r = sw_decoder_refuse(decoder, "wants", json_object_get(decoder->decoded->root, "wants"), "a list");
	if (r == 0)
		r = decode_runs(decoder, &members, &spoiled, &wants, &answer->want_count);
	if (r < 0) {
		sw_answer_free(answer);
		return r;
	}
	answer->wants = wants;
	answer->unread = spoiled.items;
	answer->unread_count = spoiled.count;
	*ret_answer = answer;
	return 0;
}

void sw_answer_free(struct sw_answer_message *answer)
{
	if (answer != NULL)
		sw_decoded_free(answer->owner);
}

int sw_run_order_decode(const char *text, size_t size, struct sw_run_order **ret_order, struct sw_err *err)
{
	struct sw_decoder context = {.what = "cannot read the order of a run", .err = err}, *decoder = &context;
	void *made = NULL;
	int r = begin(decoder, text, size, SW_SYNC_BYTES_MAX, sizeof(struct sw_run_order), &made);
	if (r < 0)
		return r;
	struct sw_run_order *order = made;
	assert(order != NULL);
	order->owner = decoder->decoded;
	json_t *root = decoder->decoded->root;
	r = DECODE(sw_order_table, root, order);
	if (r == 0)
		r = decode_want(decoder, root, &order->want);
	if (r == 0 && order->want.spec == NULL)
		r = sw_decoder_refuse(decoder, "spec", NULL, "an object");
	if (r < 0) {
		sw_run_order_free(order);
		return r;
	}
	*ret_order = order;
	return 0;
}

void sw_run_order_free(struct sw_run_order *order)
{
	if (order != NULL)
		sw_decoded_free(order->owner);
}

int sw_run_account_decode(const char *text, size_t size, struct sw_run_account **ret_account, struct sw_err *err)
{
	struct sw_decoder context = {.what = "cannot read the account of a run", .err = err}, *decoder = &context;
	void *made = NULL;
	int r = begin(decoder, text, size, SW_SYNC_BYTES_MAX, sizeof(struct sw_run_account), &made);
	if (r < 0)
		return r;
	struct sw_run_account *account = made;
	assert(account != NULL);
	account->owner = decoder->decoded;
	r = decode_run(decoder, decoder->decoded->root, &account->run);
	if (r == 0)
		r = DECODE(sw_account_table, decoder->decoded->root, account);
	if (r < 0) {
		sw_run_account_free(account);
		return r;
	}
	*ret_account = account;
	return 0;
}

void sw_run_account_free(struct sw_run_account *account)
{
	if (account != NULL)
		sw_decoded_free(account->owner);
}
