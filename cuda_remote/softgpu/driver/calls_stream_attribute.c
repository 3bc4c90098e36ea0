/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes of streams, legacy and per-thread (see cuda_api.h): compiled twice. */
#include "cuda_remote/softgpu/driver/stream.h"

CUresult PTSZ(cuStreamSetAttribute)(CUstream hStream, CUstreamAttrID attr, const CUstreamAttrValue *value)
{
	CUcontext context;
	CUstream stream;
	CUresult result = stream_enter(STREAM_OR_DEFAULT(hStream), &context, &stream);
	return result ? result : stream_set_attribute(stream, attr, value);
}

CUresult PTSZ(cuStreamGetAttribute)(CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue *value_out)
{
	CUcontext context;
	CUstream stream;
	CUresult result = stream_enter(STREAM_OR_DEFAULT(hStream), &context, &stream);
	return result ? result : stream_get_attribute(stream, attr, value_out);
}

CUresult PTSZ(cuStreamCopyAttributes)(CUstream dst, CUstream src)
{
	static const CUstreamAttrID all[] = { CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
					      CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY };
	CUcontext context;
	CUstream to, from;
	CUresult result = stream_enter(STREAM_OR_DEFAULT(dst), &context, &to);
	if (!result)
		result = stream_resolve(context, STREAM_OR_DEFAULT(src), &from);
	for (size_t i = 0; i < sizeof all / sizeof *all && !result; i++) {
		CUstreamAttrValue value;
		result = stream_get_attribute(from, all[i], &value);
		if (!result)
			result = stream_set_attribute(to, all[i], &value);
	}
	return result;
}
