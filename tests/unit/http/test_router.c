/* SPDX-License-Identifier: Apache-2.0 */
#include "base/own.h"
#include "http/router.h"
#include "unit/base/unit.h"

static void handle(struct silt_http_request *r, const silt_slice args[SILT_ROUTE_ARGS_MAX])
{
    (void)r;
    (void)args;
}

static const struct silt_route routes[] = {
    {"GET", "/", handle, 0},
    {"GET", "/healthz", handle, 1},
    {"GET", "/v1/sandboxes", handle, 2},
    {"POST", "/v1/sandboxes", handle, 3},
    {"GET", "/v1/sandboxes/special", handle, 4},
    {"GET", "/v1/sandboxes/{id}", handle, 5},
    {"DELETE", "/v1/sandboxes/{id}", handle, 6},
    {"POST", "/sandboxes/{id}/api/session/{session}/x", handle, 7},
    {"GET", "/dir/", handle, 8},
};
static struct silt_route_match m;

static int find(const char *method, const char *path)
{
    silt_router_find(routes, SILT_COUNT(routes), silt_slice_of(method), silt_slice_of(path), &m);
    return m.route != NULL ? (int)m.route->flags : -1;
}

TEST(literal_paths_match_exactly)
{
    assert_int_equal(find("GET", "/"), 0);
    assert_int_equal(find("GET", "/healthz"), 1);
    assert_int_equal(find("GET", "/healthz/"), -1);
    assert_int_equal(find("GET", "//healthz"), -1);
    assert_int_equal(find("GET", "/Healthz"), -1);
    assert_int_equal(find("GET", ""), -1);
    assert_int_equal(find("GET", "*"), -1);
    assert_int_equal(find("GET", "/dir/"), 8);
    assert_int_equal(find("GET", "/dir"), -1);
    assert_false(m.path_known);
}

TEST(named_segments_take_one_segment_as_it_is)
{
    assert_int_equal(find("GET", "/v1/sandboxes/a%2Fb"), 5);
    assert_text(m.args[0], "a%2Fb");
    assert_int_equal(find("GET", "/v1/sandboxes/"), -1);
    assert_int_equal(find("GET", "/v1/sandboxes/a/b"), -1);
    assert_int_equal(find("POST", "/sandboxes/s1/api/session/s2/x"), 7);
    assert_text(m.args[0], "s1");
    assert_text(m.args[1], "s2");
    assert_int_equal(m.args[2].len, 0);
    assert_int_equal(find("POST", "/sandboxes//api/session/s2/x"), -1);
}

TEST(the_first_row_that_fits_wins)
{
    assert_int_equal(find("GET", "/v1/sandboxes/special"), 4);
    assert_int_equal(find("DELETE", "/v1/sandboxes/special"), 6);
}

TEST(a_known_path_with_another_method_tells_the_allowed_ones)
{
    assert_int_equal(find("PUT", "/v1/sandboxes"), -1);
    assert_true(m.path_known);
    assert_string_equal(m.allow, "GET, POST");
    assert_int_equal(find("PUT", "/v1/sandboxes/special"), -1);
    assert_string_equal(m.allow, "GET, DELETE");
    assert_int_equal(find("get", "/healthz"), -1);
    assert_true(m.path_known);
}

TEST(head_is_served_where_get_is)
{
    assert_int_equal(find("HEAD", "/healthz"), 1);
    assert_int_equal(find("HEAD", "/nowhere"), -1);
}
