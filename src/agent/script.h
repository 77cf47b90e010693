/* SPDX-License-Identifier: Apache-2.0 */
/* script: text for a shell. Words from outside stand in quotes, as deep as they are nested, so that
 * they cannot end the word. The text grows in a small buffer and, past that, in a file. */
#pragma once

#include "base/slice.h"

/* A page, and what a shell reads of its input at a time. */
enum { SILT_SCRIPT_INLINE = 4096 };

/* Single quotes mean the same in every locale and with every option, but bash takes quadratic time
 * for a word that is made of many pieces, as 'it'\''s' is. Text with more quotes than this stands
 * in double quotes, where each has one backslash at most. */
enum { SILT_SCRIPT_QUOTES_MAX = 256 };

struct silt_script {
    char text[SILT_SCRIPT_INLINE];
    size_t len;
    unsigned depth;              /* of open quotes */
    size_t expected;             /* single quotes in what is going to be added */
    int file;                    /* owned; -1: all of it is in text */
    bool broken;                 /* a write failed */
    int (*open_file)(void *arg); /* answers a descriptor, or -1 */
    void *arg;                   /* borrowed */
};

void silt_script_init(struct silt_script *s, int (*open_file)(void *arg), void *arg);
void silt_script_fini(struct silt_script *s);
/* For every text from outside, before anything is added: chooses the quotes. */
void silt_script_expect(struct silt_script *s, silt_slice text);
void silt_script_add(struct silt_script *s, silt_slice text);
void silt_script_add_c(struct silt_script *s, const char *text);
void silt_script_open_quote(struct silt_script *s);
void silt_script_close_quote(struct silt_script *s);
void silt_script_add_word(struct silt_script *s, silt_slice word); /* in quotes */
/* NAME='value' for each of NAME=value\0…, a space behind each. */
void silt_script_add_env(struct silt_script *s, silt_slice env);
/* Writes out the rest when there is a file; true when there is one. */
bool silt_script_flush(struct silt_script *s);
