/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/watch/tree.h"
#include "unit/base/unit.h"

static struct silt_tree tree;
static int gone;

static void on_gone(void *context, int wd)
{
    (void)context;
    (void)wd;
    gone++;
}

static void clear(void)
{
    if (tree.root != NULL)
        silt_tree_remove(&tree, tree.root, on_gone, NULL);
    assert_int_equal(tree.count, 0);
    assert_null(tree.unread_first);
    gone = 0;
}

static void assert_path(const struct silt_directory *f, const char *name, const char *want)
{
    char path[SILT_WORKER_PATH_MAX + 1];
    assert_true(silt_tree_path(f, name, path));
    assert_string_equal(path, want);
}

TEST(paths_are_put_together_from_names)
{
    struct silt_directory *root = silt_tree_add(&tree, NULL, "", 1);
    struct silt_directory *a = silt_tree_add(&tree, root, "a", 2);
    struct silt_directory *b = silt_tree_add(&tree, a, "b b", 3);
    assert_path(root, NULL, "");
    assert_path(root, "f", "f");
    assert_path(b, NULL, "a/b b");
    assert_path(b, "f", "a/b b/f");
    assert_ptr_equal(silt_tree_find(&tree, 3), b);
    assert_ptr_equal(silt_tree_child(root, "a"), a);
    assert_null(silt_tree_child(root, "b b"));
    clear();
}

TEST(a_path_that_is_too_long_is_not_told)
{
    char name[256], path[SILT_WORKER_PATH_MAX + 1];
    memset(name, 'x', 255);
    name[255] = 0;
    struct silt_directory *f = silt_tree_add(&tree, NULL, "", 1);
    for (int i = 0; i < 16; i++)
        f = silt_tree_add(&tree, f, name, i + 2);
    assert_true(silt_tree_path(f, NULL, path)); /* 16 names and 15 slashes */
    assert_int_equal(strlen(path), 16 * 255 + 15);
    assert_false(silt_tree_path(f, "f", path));
    clear();
}

TEST(a_moved_directory_keeps_what_is_below_it)
{
    struct silt_directory *root = silt_tree_add(&tree, NULL, "", 1);
    struct silt_directory *a = silt_tree_add(&tree, root, "a", 2);
    struct silt_directory *b = silt_tree_add(&tree, root, "b", 3);
    struct silt_directory *inner = silt_tree_add(&tree, a, "inner", 4);
    silt_tree_defer(&tree, a);
    assert_non_null(silt_tree_move(&tree, a, b, "new"));
    assert_path(inner, "f", "b/new/inner/f");
    assert_path(silt_tree_find(&tree, 2), NULL, "b/new");
    assert_ptr_equal(silt_tree_next_unread(&tree), silt_tree_find(&tree, 2));
    assert_null(silt_tree_next_unread(&tree));
    assert_null(silt_tree_child(root, "a"));
    assert_null(silt_tree_move(&tree, b, inner, "loop"));
    assert_int_equal(tree.count, 4);
    clear();
}

TEST(removing_takes_all_below_and_nothing_beside)
{
    struct silt_directory *root = silt_tree_add(&tree, NULL, "", 1), *f = root, *a = NULL;
    (void)silt_tree_add(&tree, root, "beside", 2);
    for (int i = 0; i < 1000; i++) {
        f = silt_tree_add(&tree, f, "d", i + 3);
        a = i == 0 ? f : a;
        silt_tree_defer(&tree, f);
    }
    silt_tree_remove(&tree, a, on_gone, NULL);
    assert_int_equal(gone, 1000);
    assert_int_equal(tree.count, 2);
    assert_null(silt_tree_next_unread(&tree));
    assert_null(silt_tree_find(&tree, 500));
    assert_non_null(silt_tree_child(root, "beside"));
    clear();
}

TEST(there_is_a_most)
{
    struct silt_directory *root = silt_tree_add(&tree, NULL, "", 0);
    for (int i = 1; i < SILT_TREE_MAX; i++)
        assert_non_null(silt_tree_add(&tree, root, "d", i));
    assert_null(silt_tree_add(&tree, root, "one more", SILT_TREE_MAX));
    clear();
}
