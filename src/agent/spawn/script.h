/* SPDX-License-Identifier: Apache-2.0 */
/* script: text for a shell. Words from outside are quoted, at any nesting depth, so that they
 * cannot end the word. The text is built in a small buffer and, beyond that, in a file. */
#pragma once

#include "base/slice.h"

/* A page, and what a shell reads of its input at a time. */
enum { SILT_SCRIPT_INLINE = 4096 };

/* Single quotes mean the same in every locale and with every option, but bash takes quadratic time
 * for a word made of many pieces, like 'it'\''s'. Text with more single quotes than this is put in
 * double quotes, where each character needs at most one backslash. */
enum { SILT_SCRIPT_QUOTES_MAX = 256 };

struct silt_script {
    char text[SILT_SCRIPT_INLINE];
    size_t len;
    unsigned depth;              /* of nested quotes */
    size_t expected;             /* single quotes in the text to be added */
    int file;                    /* owned; -1: everything is in text */
    bool broken;                 /* a write failed */
    int (*open_file)(void *arg); /* returns a descriptor, or -1 */
    void *arg;                   /* borrowed */
};

void silt_script_init(struct silt_script *s, int (*open_file)(void *arg), void *arg);
void silt_script_fini(struct silt_script *s);
/* Call for every text from outside before adding anything: chooses the quotes. */
void silt_script_expect(struct silt_script *s, silt_slice text);
void silt_script_add(struct silt_script *s, silt_slice text);
void silt_script_add_c(struct silt_script *s, const char *text);
void silt_script_open_quote(struct silt_script *s);
void silt_script_close_quote(struct silt_script *s);
void silt_script_add_word(struct silt_script *s, silt_slice word); /* quoted */
/* Adds NAME='value' and a space for each NAME=value\0. */
void silt_script_add_env(struct silt_script *s, silt_slice env);
/* Writes the rest to the file, if there is one; returns whether there is. */
bool silt_script_flush(struct silt_script *s);
