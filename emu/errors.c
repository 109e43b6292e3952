/* Names and words of the codes. */
#include "entry.h"

#include <stddef.h>

static const struct {
	CUresult code;
	const char *name, *words;
} errors[] = {
#define E(name, words)                            \
	{                                         \
		CUDA_##name, "CUDA_" #name, words \
	}
	E(SUCCESS, "no error"),
	E(ERROR_INVALID_VALUE, "invalid argument"),
	E(ERROR_OUT_OF_MEMORY, "out of memory"),
	E(ERROR_NOT_INITIALIZED, "initialization error"),
	E(ERROR_DEINITIALIZED, "driver shutting down"),
	E(ERROR_DEVICE_UNAVAILABLE, "the device is busy or unavailable"),
	E(ERROR_NO_DEVICE, "no device is detected"),
	E(ERROR_INVALID_DEVICE, "invalid device number"),
	E(ERROR_INVALID_IMAGE, "invalid kernel image"),
	E(ERROR_INVALID_CONTEXT, "invalid device context"),
	E(ERROR_ALREADY_MAPPED, "already mapped"),
	E(ERROR_NO_BINARY_FOR_GPU, "no kernel image for this device"),
	E(ERROR_NOT_MAPPED, "not mapped"),
	E(ERROR_UNSUPPORTED_LIMIT, "limit is not supported"),
	E(ERROR_PEER_ACCESS_UNSUPPORTED, "peer access is not supported between these devices"),
	E(ERROR_INVALID_PTX, "invalid PTX"),
	E(ERROR_FILE_NOT_FOUND, "file not found"),
	E(ERROR_OPERATING_SYSTEM, "a call of the operating system failed"),
	E(ERROR_INVALID_HANDLE, "invalid handle"),
	E(ERROR_ILLEGAL_STATE, "not allowed in this state"),
	E(ERROR_NOT_FOUND, "name not found"),
	E(ERROR_NOT_READY, "not ready"),
	E(ERROR_ILLEGAL_ADDRESS, "illegal memory access"),
	E(ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is already enabled"),
	E(ERROR_PEER_ACCESS_NOT_ENABLED, "peer access is not enabled"),
	E(ERROR_PRIMARY_CONTEXT_ACTIVE, "the primary context is in use"),
	E(ERROR_CONTEXT_IS_DESTROYED, "the context is destroyed"),
	E(ERROR_HOST_MEMORY_ALREADY_REGISTERED, "host memory is already registered"),
	E(ERROR_HOST_MEMORY_NOT_REGISTERED, "host memory is not registered"),
	E(ERROR_LAUNCH_FAILED, "a launch failed"),
	E(ERROR_NOT_PERMITTED, "not permitted"),
	E(ERROR_NOT_SUPPORTED, "not supported"),
	E(ERROR_SYSTEM_NOT_READY, "the system is not ready"),
	E(ERROR_STREAM_CAPTURE_UNSUPPORTED, "not permitted while a stream captures"),
	E(ERROR_STREAM_CAPTURE_INVALIDATED, "the capture failed because of an earlier error"),
	E(ERROR_STREAM_CAPTURE_MERGE, "would merge two captures"),
	E(ERROR_STREAM_CAPTURE_UNMATCHED, "the capture did not begin in this stream"),
	E(ERROR_STREAM_CAPTURE_UNJOINED, "a stream was forked off and not joined"),
	E(ERROR_STREAM_CAPTURE_ISOLATION, "would depend on work outside of the capture"),
	E(ERROR_STREAM_CAPTURE_IMPLICIT, "would depend on a capturing stream through the default stream"),
	E(ERROR_CAPTURED_EVENT, "the event was last recorded in a capture"),
	E(ERROR_STREAM_CAPTURE_WRONG_THREAD, "the capture belongs to another thread"),
	E(ERROR_TIMEOUT, "took too long"),
	E(ERROR_GRAPH_EXEC_UPDATE_FAILURE, "the graphs differ too much"),
	E(ERROR_UNKNOWN, "unknown error"),
#undef E
};

static CUresult look_up(CUresult code, const char **ret_text, int words)
{
	if (ret_text == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
		if (errors[i].code == code) {
			*ret_text = words ? errors[i].words : errors[i].name;
			return CUDA_SUCCESS;
		}
	}
	*ret_text = NULL;
	return CUDA_ERROR_INVALID_VALUE;
}

ENTRY(cuGetErrorName, CUresult code, const char **ret_name)
{
	return look_up(code, ret_name, 0);
}

ENTRY(cuGetErrorString, CUresult code, const char **ret_words)
{
	return look_up(code, ret_words, 1);
}
