/* A made-up NVRTC. The macros say in what it differs from a working one: VERSION_MAJOR,
 * VERSION_MINOR, ARCHITECTURES, CREATE_STATUS, COMPILE_STATUS, NAME_STATUS, CUBIN_SIZE,
 * WITHOUT_CUBIN, WITHOUT_ARCHITECTURES, WITHOUT_ERROR_STRING, WITHOUT_PROGRAM. Its code is a
 * text of what it was asked for. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef VERSION_MAJOR
#define VERSION_MAJOR 12
#endif
#ifndef VERSION_MINOR
#define VERSION_MINOR 0
#endif
#ifndef ARCHITECTURES
#define ARCHITECTURES 90, 75, 80
#endif
#ifndef CREATE_STATUS
#define CREATE_STATUS 0
#endif
#ifndef COMPILE_STATUS
#define COMPILE_STATUS 0
#endif
#ifndef NAME_STATUS
#define NAME_STATUS 0
#endif

typedef struct {
  char name[100], options[2000];
} Program;

static int live;

int live_programs(void) { return live; }

int nvrtcVersion(int *major, int *minor) {
  *major = VERSION_MAJOR;
  *minor = VERSION_MINOR;
  return 0;
}

#ifndef WITHOUT_PROGRAM
int nvrtcCreateProgram(Program **program, const char *text, const char *name, int headers,
                       const char *const *texts, const char *const *names) {
  (void)text, (void)headers, (void)texts, (void)names;
  if (CREATE_STATUS)
    return CREATE_STATUS;
  *program = calloc(1, sizeof(Program));
  snprintf((*program)->name, sizeof (*program)->name, "%s", name);
  live++;
  return 0;
}

int nvrtcDestroyProgram(Program **program) {
  free(*program);
  *program = NULL;
  live--;
  return 0;
}
#endif

int nvrtcCompileProgram(Program *program, int count, const char *const *options) {
  for (int i = 0; i < count; i++) {
    strcat(program->options, " ");
    strcat(program->options, options[i]);
  }
  return COMPILE_STATUS;
}

int nvrtcAddNameExpression(Program *program, const char *name) {
  (void)program, (void)name;
  return 0;
}

int nvrtcGetLoweredName(Program *program, const char *name, const char **lowered) {
  (void)program, (void)name;
  *lowered = NULL;
  return NAME_STATUS;
}

int nvrtcGetProgramLogSize(Program *program, size_t *size) {
  (void)program;
  *size = 1;
  return 0;
}

int nvrtcGetProgramLog(Program *program, char *log) {
  (void)program;
  *log = 0;
  return 0;
}

static int write_code(Program *program, const char *form, char *code) {
  return snprintf(code, code ? 3000 : 0, "%s of %s with%s", form, program->name, program->options);
}

int nvrtcGetPTXSize(Program *program, size_t *size) {
  *size = write_code(program, "PTX", NULL) + 1;
  return 0;
}

int nvrtcGetPTX(Program *program, char *code) {
  write_code(program, "PTX", code);
  return 0;
}

#ifndef WITHOUT_CUBIN
int nvrtcGetCUBINSize(Program *program, size_t *size) {
#ifdef CUBIN_SIZE
  (void)program;
  *size = CUBIN_SIZE;
#else
  *size = strstr(program->options, "compute_") ? 0 : write_code(program, "cubin", NULL) + 1;
#endif
  return 0;
}

int nvrtcGetCUBIN(Program *program, char *code) {
  write_code(program, "cubin", code);
  return 0;
}
#endif

#ifndef WITHOUT_ARCHITECTURES
static const int architectures[] = {ARCHITECTURES};

int nvrtcGetNumSupportedArchs(int *count) {
  *count = sizeof architectures / sizeof *architectures;
  return 0;
}

int nvrtcGetSupportedArchs(int *list) {
  memcpy(list, architectures, sizeof architectures);
  return 0;
}
#endif

#ifndef WITHOUT_ERROR_STRING
const char *nvrtcGetErrorString(int status) {
  return status == 2 ? "MADE_UP_CREATION_FAILURE" : NULL;
}
#endif
