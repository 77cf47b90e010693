/* SPDX-License-Identifier: Apache-2.0 */
#include "api/rpc/rpc.h"
#include "api/rpc/text.h"
#include "base/own.h"
#include "unit/base/unit.h"

static struct silt_error e;
static struct silt_arena arena;

static const struct silt_json *json(const char *text)
{
    const struct silt_json *v;
    if (silt_json_read(&arena, silt_slice_of(text), &v, &e) < 0)
        fail_msg("%s: %s", text, e.text);
    return v;
}

static void begin(struct silt_buf *b)
{
    silt_buf_init(b, 1 << 20);
    silt_arena_fini(&arena);
    silt_arena_init(&arena, 1 << 20);
}

TEST(arrays_are_put_in_one_more_at_each_level)
{
    silt_auto_buf b;
    begin(&b);
    silt_rpc_wrap(&b, SILT_LIT("{\"a\":[],\"b\":[1,[\"]\",\"\\\"[\"]],\"c\":\"[\\\\\"}"));
    assert_text(silt_buf_slice(&b), "{\"a\":[[]],\"b\":[[1,[[\"]\",\"\\\"[\"]]]],\"c\":\"[\\\\\"}");
}

TEST(members_are_picked_renamed_and_dated)
{
    silt_auto_buf b;
    begin(&b);
    silt_rpc_pick(&b,
                  SILT_LIT("{\"contextId\":\"x\",\"more\":[{\"a\":1}],\"createdAt\":\"2026-01-"
                           "02T03:04:05.678Z\",\"list\":[{\"id\":1,"
                           "\"z\":2},{\"z\":[3]}],\"one\":{\"id\":[4],\"z\":5}}"),
                  "success! id=contextId createdAt@ list(id) one(id) absent n!", 12);
    assert_text(silt_buf_slice(&b), "{\"success\":true,\"id\":\"x\",\"createdAt\":[\"date\","
                                    "1767323045678],\"list\":[[{\"id\":1},{}]],"
                                    "\"one\":{\"id\":[[4]]},\"n\":12}");
    silt_buf_clear(&b);
    silt_rpc_pick_one(&b, SILT_LIT("{\"list\":[]}"), "list(id)");
    silt_buf_add_byte(&b, ' ');
    silt_rpc_pick_one(&b, SILT_LIT("{\"a\":null}"), "b");
    silt_buf_add_byte(&b, ' ');
    silt_rpc_pick_one(&b, SILT_LIT("{\"a\":\"never\"}"), "a@");
    assert_text(silt_buf_slice(&b), "[[]] [\"undefined\"] [\"date\",null]");
}

TEST(a_refusal_keeps_its_code_if_clients_know_it)
{
    silt_auto_buf b;
    begin(&b);
    silt_rpc_refusal(&b, SILT_LIT("{\"code\":\"FILE_NOT_FOUND\",\"message\":\"no "
                                  "\\\"x\\\"\",\"context\":{\"p\":[\"x\"]},\"httpStatus\":404}"));
    assert_text(silt_buf_slice(&b),
                "[\"error\",\"Error\",\"no "
                "\\\"x\\\"\",null,{\"code\":\"FILE_NOT_FOUND\",\"details\":{\"p\":[[\"x\"]]}}]");
    silt_buf_clear(&b);
    silt_rpc_refusal(
        &b, SILT_LIT("{\"code\":\"LIMIT_REACHED\",\"message\":\"m\",\"context\":{\"a\":1}}"));
    assert_text(silt_buf_slice(&b), "[\"error\",\"Error\",\"m\",null,{\"code\":\"INTERNAL_ERROR\","
                                    "\"details\":{\"code\":\"LIMIT_REACHED\",\"a\":1}}]");
    silt_buf_clear(&b);
    silt_rpc_refusal(&b, SILT_LIT("{\"error\":1}"));
    assert_true(silt_slice_starts(silt_buf_slice(&b), SILT_LIT("[\"error\",\"Error\",")));
}

TEST(values_become_plain_json)
{
    silt_auto_buf b;
    begin(&b);
    silt_rpc_plain(&b, json("{\"a\":[[1,[[]],[\"undefined\"]]],\"b\":[\"undefined\"],\"c\":["
                            "\"date\",0],\"d\":[\"bytes\",\"AA\"],\"e\":["
                            "\"error\",\"E\",\"m\"],\"f\":[\"inf\"],\"g\":[\"bigint\",\"5\"],\"h\":"
                            "[\"date\",null]}"));
    assert_text(silt_buf_slice(&b), "{\"a\":[1,[],null],\"c\":\"1970-01-01T00:00:00.000Z\",\"d\":"
                                    "\"AA\",\"e\":{\"name\":\"E\",\"message\":"
                                    "\"m\"},\"f\":null,\"g\":\"5\",\"h\":null}");
}

TEST(what_is_mentioned_is_counted_as_often_as_it_is)
{
    silt_auto_buf b;
    struct silt_rpc_refs refs;
    begin(&b);
    assert_true(silt_rpc_refs(
        json("{\"a\":[\"export\",-1],\"b\":[[[\"export\",-1],[\"readable\",3]]]}"), &refs));
    assert_int_equal(refs.count, 2);
    assert_int_equal(refs.exports[1], -1);
    assert_int_equal(refs.pipes[0], 3);
    assert_false(refs.foreign);
    assert_true(silt_rpc_refs(json("[\"blob\",\"t\",[\"readable\",9]]"), &refs));
    assert_true(refs.foreign && refs.pipe_count == 1);
    static const char *const bad[] = {"[]",
                                      "[1]",
                                      "[\"what\"]",
                                      "[\"bytes\",1]",
                                      "[\"date\",\"x\"]",
                                      "[\"export\"]",
                                      "[\"undefined\",1]",
                                      "[\"error\",\"E\"]",
                                      "[\"error\",\"E\",\"m\",null,[]]",
                                      "{\"a\":[\"readable\",1.5]}"};
    for (size_t i = 0; i < SILT_COUNT(bad); i++)
        if (silt_rpc_refs(json(bad[i]), &refs))
            fail_msg("%s is taken", bad[i]);
}

static void lay(const char *call, struct silt_rpc_request *q, const struct silt_rpc_method **ret)
{
    struct silt_rpc_invocation v;
    assert_true(silt_rpc_is_invocation(json(call), &v));
    *ret = silt_rpc_method_find(v.path, v.args);
    assert_non_null(*ret);
    silt_rpc_request_init(q, 1 << 20);
    const char *wrong = silt_rpc_request_lay(*ret, v.args, "box", q);
    if (wrong != NULL)
        fail_msg("%s: %s", call, wrong);
}

TEST(a_call_is_a_request)
{
    silt_auto_buf b;
    struct silt_rpc_request q;
    const struct silt_rpc_method *m;
    begin(&b);
    lay("[\"pipeline\",0,[\"files\",\"mkdir\"],[\"/d\",\"s\",{\"recursive\":true,\"path\":\"x\"}]]",
        &q, &m);
    assert_text(silt_buf_slice(&q.body),
                "{\"path\":\"/d\",\"sessionId\":\"s\",\"recursive\":true}");
    assert_true(silt_slice_starts(silt_buf_slice(&q.head),
                                  SILT_LIT("POST /sandboxes/box/api/mkdir HTTP/1.1\r\n")));
    silt_rpc_request_fini(&q);
    lay("[\"pipeline\",0,[\"files\",\"readFile\"],[\"/"
        "d\",[\"undefined\"],{\"encoding\":\"none\"}]]",
        &q, &m);
    assert_int_equal(m->shape, SILT_RPC_RAW);
    assert_text(q.args[0], "/d");
    assert_null(q.args[1].data);
    silt_rpc_request_fini(&q);
    lay("[\"pipeline\",0,[\"files\",\"writeFile\"],[\"/d\",\"\\u00e4\"]]", &q, &m);
    assert_int_equal(q.number, 2);
    silt_rpc_request_fini(&q);
    lay("[\"pipeline\",0,[\"files\",\"writeFileStream\"],[\"/d\",[\"readable\",7],\"s\"]]", &q, &m);
    assert_int_equal(q.pipe, 7);
    assert_int_equal(q.body.len, 0);
    silt_rpc_request_fini(&q);
    lay("[\"pipeline\",0,[\"interpreter\",\"runCodeStream\"],[\"c\",\"1\",null,{\"onResult\":["
        "\"export\",-3],\"onError\":null},5]]",
        &q, &m);
    assert_int_equal(q.callbacks[2], -3);
    assert_int_equal(q.callbacks[3], 0);
    assert_text(silt_buf_slice(&q.body),
                "{\"context_id\":\"c\",\"code\":\"1\",\"language\":null,\"timeout_ms\":5}");
    silt_rpc_request_fini(&q);
    silt_arena_fini(&arena);
}

TEST(a_stream_that_is_too_large_ends_also_if_it_is_pulled_at_that_moment)
{
    static const struct silt_rpc_method method = {.shape = SILT_RPC_FLOW};
    struct silt_loop loop;
    assert_int_equal(silt_loop_open(&loop, &e), 0);
    struct silt_api api = {.loop = &loop};
    struct silt_rpc line = {.api = &api, .is_over = true /* nothing is sent */};
    silt_list_init(&line.calls);
    silt_map_init(&line.exports);
    silt_map_init(&line.waits);
    struct silt_rpc_call *c = silt_rpc_call_new(&line);
    c->method = &method;
    c->sink.begin(&c->sink, 200, SILT_LIT("text/event-stream"));
    silt_rpc_hold(&line, 1 << 30); /* by other calls */
    c->sink.write(&c->sink, SILT_LIT(": one\n\n"));
    assert_int_equal(c->source, SILT_RPC_SOURCE_TOO_LARGE);
    silt_rpc_call_pull(c);
    assert_int_equal(silt_loop_turn(&loop, 100, &e), 0);
    assert_int_equal(c->state, SILT_RPC_ANSWERED);
    assert_int_equal(line.count, 0);
    silt_rpc_call_hang_up(c);
    assert_int_equal(silt_loop_turn(&loop, 0, &e), 0);
    silt_map_fini(&line.exports);
    silt_map_fini(&line.waits);
    silt_loop_close(&loop);
}
