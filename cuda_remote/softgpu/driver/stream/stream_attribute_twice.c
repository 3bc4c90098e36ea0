/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes of streams, legacy and per-thread (see cuda_api.h): compiled twice. */
#include "cuda_remote/softgpu/driver/stream/default_stream.h"

CUresult PTSZ(cuStreamSetAttribute)(CUstream hStream, CUstreamAttrID attr, const CUstreamAttrValue *value)
{
	CUstream stream;
	CUresult result = enter_stream(hStream, &stream);
	return result ? result : stream_set_attribute(stream, attr, value);
}

CUresult PTSZ(cuStreamGetAttribute)(CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue *value_out)
{
	CUstream stream;
	CUresult result = enter_stream(hStream, &stream);
	return result ? result : stream_get_attribute(stream, attr, value_out);
}

CUresult PTSZ(cuStreamCopyAttributes)(CUstream dst, CUstream src)
{
	static const CUstreamAttrID all[] = { CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
					      CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY };
	CUstream to, from;
	CUresult result = enter_stream(dst, &to);
	if (!result)
		result = enter_stream(src, &from);
	for (size_t i = 0; i < sizeof all / sizeof *all && !result; i++) {
		CUstreamAttrValue value;
		result = stream_get_attribute(from, all[i], &value);
		if (!result)
			result = stream_set_attribute(to, all[i], &value);
	}
	return result;
}
