# SPDX-License-Identifier: BSD-3-Clause
# The front end: PTX text to statements.
softgpu_ptx_sources = \
	cuda_remote/softgpu/ptx/context.c cuda_remote/softgpu/ptx/context.h \
	cuda_remote/softgpu/ptx/constant.c \
	cuda_remote/softgpu/ptx/declaration.c \
	cuda_remote/softgpu/ptx/initialiser.c \
	cuda_remote/softgpu/ptx/legacy.c \
	cuda_remote/softgpu/ptx/lexer.c cuda_remote/softgpu/ptx/lexer.h \
	cuda_remote/softgpu/ptx/link.c \
	cuda_remote/softgpu/ptx/module.h \
	cuda_remote/softgpu/ptx/parser.c cuda_remote/softgpu/ptx/parser.h \
	cuda_remote/softgpu/ptx/statement.c \
	cuda_remote/softgpu/ptx/symbol.c
