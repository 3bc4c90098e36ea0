/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Settings of GPU core dumps. The software GPU writes none, so they cannot be switched on. All other settings are
 * stored and returned by queries, for the process and for each context that has its own.
 */
#include "cuda_remote/softgpu/driver/context/context.h"
#include "cuda_remote/softgpu/driver/init.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME_BYTES 1024
#define KNOWN_FLAGS (CU_COREDUMP_LIGHTWEIGHT_FLAGS | CU_COREDUMP_SKIP_ABORT)

struct coredump {
	unsigned own; /* of a context: bits (owner_bit) of the settings that it has; others are the process's */
	bool trigger_host;
	int flags;
	char file[NAME_BYTES], pipe[NAME_BYTES];
};

static pthread_mutex_t coredump_lock = PTHREAD_MUTEX_INITIALIZER;
static struct coredump process = { .trigger_host = true };

/* The process's settings, with default file names. With the lock held. */
static struct coredump *of_process(void)
{
	char host[256] = "";
	if (process.file[0])
		return &process;
	if (gethostname(host, sizeof host - 1))
		strcpy(host, "localhost");
	snprintf(process.file, NAME_BYTES, "core.cuda.%s.%d", host, (int)getpid());
	snprintf(process.pipe, NAME_BYTES, "corepipe.cuda.%s.%d", host, (int)getpid());
	return &process;
}

/* CU_COREDUMP_LIGHTWEIGHT is the older form of the generation flags: the two are one setting. */
static unsigned owner_bit(CUcoredumpSettings attribute)
{
	return 1u << (attribute == CU_COREDUMP_LIGHTWEIGHT ? CU_COREDUMP_GENERATION_FLAGS : attribute);
}

static size_t bytes_of(CUcoredumpSettings attribute)
{
	switch (attribute) {
	case CU_COREDUMP_ENABLE_ON_EXCEPTION:
	case CU_COREDUMP_TRIGGER_HOST:
	case CU_COREDUMP_LIGHTWEIGHT:
	case CU_COREDUMP_ENABLE_USER_TRIGGER:
		return sizeof(bool);
	case CU_COREDUMP_FILE:
	case CU_COREDUMP_PIPE:
		return NAME_BYTES;
	case CU_COREDUMP_GENERATION_FLAGS:
		return sizeof(int);
	default:
		return 0;
	}
}

static CUresult get(const struct coredump *from, CUcoredumpSettings attribute, void *value, size_t *size)
{
	bool truth = false;
	const char *name = attribute == CU_COREDUMP_FILE ? from->file : from->pipe;
	size_t bytes = bytes_of(attribute);
	if (!size || !bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (!value) {
		*size = bytes;
		return CUDA_SUCCESS;
	}
	if (bytes == NAME_BYTES)
		bytes = strlen(name) + 1;
	if (*size < bytes)
		return CUDA_ERROR_INVALID_VALUE;
	const void *what = name;
	if (attribute == CU_COREDUMP_GENERATION_FLAGS)
		what = &from->flags;
	else if (bytes_of(attribute) == sizeof truth)
		what = &truth;
	if (attribute == CU_COREDUMP_TRIGGER_HOST)
		truth = from->trigger_host;
	else if (attribute == CU_COREDUMP_LIGHTWEIGHT)
		truth = (from->flags & CU_COREDUMP_LIGHTWEIGHT_FLAGS) == CU_COREDUMP_LIGHTWEIGHT_FLAGS;
	memcpy(value, what, bytes);
	*size = bytes;
	return CUDA_SUCCESS;
}

static CUresult set_name(char *name, const char *value, size_t size)
{
	size_t length = strnlen(value, size);
	if (!length || length >= NAME_BYTES)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(name, value, length);
	name[length] = '\0';
	return CUDA_SUCCESS;
}

static CUresult set_flags(struct coredump *to, int flags)
{
	if (flags & ~KNOWN_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	to->flags = flags;
	return CUDA_SUCCESS;
}

static CUresult set(struct coredump *to, CUcoredumpSettings attribute, const void *value, size_t size)
{
	bool truth = false;
	int flags = to->flags & ~CU_COREDUMP_LIGHTWEIGHT_FLAGS;
	if (bytes_of(attribute) != NAME_BYTES && size < bytes_of(attribute))
		return CUDA_ERROR_INVALID_VALUE;
	if (bytes_of(attribute) == sizeof truth)
		truth = *(const unsigned char *)value;
	switch (attribute) {
	case CU_COREDUMP_TRIGGER_HOST:
		to->trigger_host = truth;
		return CUDA_SUCCESS;
	case CU_COREDUMP_LIGHTWEIGHT:
		return set_flags(to, truth ? flags | CU_COREDUMP_LIGHTWEIGHT_FLAGS : flags);
	case CU_COREDUMP_GENERATION_FLAGS:
		memcpy(&flags, value, sizeof flags);
		return set_flags(to, flags);
	case CU_COREDUMP_FILE:
		return set_name(to->file, value, size);
	case CU_COREDUMP_PIPE:
		return set_name(to->pipe, value, size);
	default:
		return truth ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
	}
}

/* With the lock held. */
static CUresult set_for(CUcontext context, CUcoredumpSettings attribute, const void *value, size_t size)
{
	struct coredump copy = context && context->coredump ? *context->coredump : *of_process();
	if (!(copy.own & owner_bit(CU_COREDUMP_GENERATION_FLAGS)))
		copy.flags = process.flags;
	CUresult result = set(&copy, attribute, value, size);
	if (result)
		return result;
	if (context)
		copy.own |= owner_bit(attribute);
	if (context && !context->coredump)
		context->coredump = malloc(sizeof copy);
	if (context && !context->coredump)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*(context ? context->coredump : &process) = copy;
	return CUDA_SUCCESS;
}

static CUresult set_attribute(CUcontext context, CUcoredumpSettings attribute, const void *value, size_t *size)
{
	if (!size || !bytes_of(attribute))
		return CUDA_ERROR_INVALID_VALUE;
	if (context && (attribute == CU_COREDUMP_ENABLE_USER_TRIGGER || attribute == CU_COREDUMP_PIPE))
		return CUDA_ERROR_NOT_PERMITTED;
	if (!value) {
		*size = bytes_of(attribute);
		return CUDA_SUCCESS;
	}
	pthread_mutex_lock(&coredump_lock);
	CUresult result = set_for(context, attribute, value, *size);
	pthread_mutex_unlock(&coredump_lock);
	return result;
}

static CUresult get_attribute(CUcontext context, CUcoredumpSettings attribute, void *value, size_t *size)
{
	pthread_mutex_lock(&coredump_lock);
	bool own = context && context->coredump && bytes_of(attribute) &&
		   context->coredump->own & owner_bit(attribute);
	CUresult result = get(own ? context->coredump : of_process(), attribute, value, size);
	pthread_mutex_unlock(&coredump_lock);
	return result;
}

CUresult cuCoredumpGetAttribute(CUcoredumpSettings attrib, void *value, size_t *size)
{
	CUcontext context;
	CUresult result = context_enter(&context);
	return result ? result : get_attribute(context, attrib, value, size);
}

CUresult cuCoredumpSetAttribute(CUcoredumpSettings attrib, void *value, size_t *size)
{
	CUcontext context;
	CUresult result = context_enter(&context);
	return result ? result : set_attribute(context, attrib, value, size);
}

/* The process has settings without a context, and before cuInit. */
CUresult cuCoredumpGetAttributeGlobal(CUcoredumpSettings attrib, void *value, size_t *size)
{
	return get_attribute(NULL, attrib, value, size);
}

CUresult cuCoredumpSetAttributeGlobal(CUcoredumpSettings attrib, void *value, size_t *size)
{
	return set_attribute(NULL, attrib, value, size);
}
