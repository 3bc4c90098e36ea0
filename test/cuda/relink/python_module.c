/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A module of Python that is made as those that Cython generates for cuda.bindings: it has NVIDIA's static runtime, and
 * offers the runtime's functions to other modules by the capsules of __pyx_capi__. ask(capsule) calls such a function.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cuda_runtime_api.h>

#ifdef WITH_DEPENDENCY
int dependency(void);
#endif

typedef cudaError_t function_t(int *);

static cudaError_t get_version(int *version)
{
	return cudaRuntimeGetVersion(version);
}

static cudaError_t get_device_count(int *count)
{
	return cudaGetDeviceCount(count);
}

static cudaError_t query(cudaStream_t stream)
{
	return cudaStreamQuery(stream);
}

/* Of a release of CUDA that Headrace does not know. */
static cudaError_t later(int *count)
{
	return cudaGetDeviceCount(count);
}

/* No function of the runtime. */
static cudaError_t own(int *value)
{
	*value = 42;
	return cudaSuccess;
}

static PyObject *ask(PyObject *module, PyObject *capsule)
{
	int value = 0, error;
	function_t *function = (function_t *)PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule));
	(void)module;
	if (!function)
		return NULL;
	error = function(&value);
	return Py_BuildValue("(ii)", error, value);
}

static PyMethodDef methods[] = { { "ask", ask, METH_O, NULL }, { NULL, NULL, 0, NULL } };

static PyObject *create(PyObject *spec, PyModuleDef *definition)
{
	(void)definition;
	PyObject *name = PyObject_GetAttrString(spec, "name");
	PyObject *module = name ? PyModule_NewObject(name) : NULL;
	Py_XDECREF(name);
	return module;
}

static int offer(PyObject *offered, const char *name, const char *signature, void *function)
{
	PyObject *capsule = PyCapsule_New(function, signature, NULL);
	int status = capsule ? PyDict_SetItemString(offered, name, capsule) : -1;
	Py_XDECREF(capsule);
	return status;
}

static int execute(PyObject *module)
{
	PyObject *offered = PyDict_New();
	if (!offered || offer(offered, "_cudaRuntimeGetVersion", "cudaError_t (int *)", (void *)get_version) ||
	    offer(offered, "_cudaGetDeviceCount", "cudaError_t (int *)", (void *)get_device_count) ||
	    offer(offered, "_cudaStreamQuery", "cudaError_t (cudaStream_t)", (void *)query) ||
	    offer(offered, "_cudaOfALaterRelease", "cudaError_t (int *)", (void *)later) ||
	    offer(offered, "_make_cudaExtent", "cudaError_t (int *)", (void *)own))
		return -1;
#ifdef WITH_DEPENDENCY
	if (dependency())
		return -1;
#endif
	return PyModule_AddObject(module, "__pyx_capi__", offered);
}

static PyModuleDef_Slot slots[] = { { Py_mod_create, (void *)create }, { Py_mod_exec, (void *)execute }, { 0, NULL } };

static PyModuleDef definition = {
	PyModuleDef_HEAD_INIT, .m_name = "capsules", .m_methods = methods, .m_slots = slots
};

PyMODINIT_FUNC PyInit_capsules(void)
{
	return PyModuleDef_Init(&definition);
}
