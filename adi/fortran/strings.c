/* SPDX-License-Identifier: BSD-3-Clause */
/* Stubs of functions with lengths of strings or with arrays of strings. Lengths in C count the terminating null. */
#include "adi/fortran/fortran.h"

#include <string.h>

void pmpi_info_get_(MPI_Fint *info, char *key, MPI_Fint *valuelen, char *value, MPI_Fint *flag, MPI_Fint *ierror,
		    size_t key_length, size_t value_length);
void pmpi_info_get_(MPI_Fint *info, char *key, MPI_Fint *valuelen, char *value, MPI_Fint *flag, MPI_Fint *ierror,
		    size_t key_length, size_t value_length)
{
	char *key_c = hrf_key(key, key_length), text[MPI_MAX_INFO_VAL] = "";
	int length = *valuelen < MPI_MAX_INFO_VAL - 1 ? *valuelen : MPI_MAX_INFO_VAL - 1, has = 0;
	int class = PMPI_Info_get(hrf_info(*info), key_c, length, text, &has);
	if (class == MPI_SUCCESS && has)
		hrf_give(text, value, value_length);
	*flag = has != 0;
	free(key_c);
	hrf_return(class);
}
HRF_NAMES(info_get);

void pmpi_info_get_valuelen_(MPI_Fint *info, char *key, MPI_Fint *valuelen, MPI_Fint *flag, MPI_Fint *ierror,
			     size_t key_length);
void pmpi_info_get_valuelen_(MPI_Fint *info, char *key, MPI_Fint *valuelen, MPI_Fint *flag, MPI_Fint *ierror,
			     size_t key_length)
{
	char *key_c = hrf_key(key, key_length);
	int has = 0, class = PMPI_Info_get_valuelen(hrf_info(*info), key_c, valuelen, &has);
	*flag = has != 0;
	free(key_c);
	hrf_return(class);
}
HRF_NAMES(info_get_valuelen);

void pmpi_info_get_string_(MPI_Fint *info, char *key, MPI_Fint *buflen, char *value, MPI_Fint *flag, MPI_Fint *ierror,
			   size_t key_length, size_t value_length);
void pmpi_info_get_string_(MPI_Fint *info, char *key, MPI_Fint *buflen, char *value, MPI_Fint *flag, MPI_Fint *ierror,
			   size_t key_length, size_t value_length)
{
	char *key_c = hrf_key(key, key_length), text[MPI_MAX_INFO_VAL] = "";
	int given = *buflen > 0, has = 0;
	int length = given ? (*buflen < MPI_MAX_INFO_VAL - 1 ? *buflen + 1 : MPI_MAX_INFO_VAL) : 0;
	int class = PMPI_Info_get_string(hrf_info(*info), key_c, &length, text, &has);
	if (class == MPI_SUCCESS && has) {
		if (given)
			hrf_give(text, value, value_length);
		*buflen = length - 1;
	}
	*flag = has != 0;
	free(key_c);
	hrf_return(class);
}
HRF_NAMES(info_get_string);

void pmpi_session_get_nth_pset_(MPI_Fint *session, MPI_Fint *info, MPI_Fint *n, MPI_Fint *pset_len, char *pset_name,
				MPI_Fint *ierror, size_t pset_name_length);
void pmpi_session_get_nth_pset_(MPI_Fint *session, MPI_Fint *info, MPI_Fint *n, MPI_Fint *pset_len, char *pset_name,
				MPI_Fint *ierror, size_t pset_name_length)
{
	char text[MPI_MAX_PSET_NAME_LEN] = "";
	int given = *pset_len > 0;
	int length = given ? (*pset_len < MPI_MAX_PSET_NAME_LEN - 1 ? *pset_len + 1 : MPI_MAX_PSET_NAME_LEN) : 0;
	int class = PMPI_Session_get_nth_pset(hrf_session(*session), hrf_info(*info), *n, &length, text);
	if (class == MPI_SUCCESS) {
		if (given)
			hrf_give(text, pset_name, pset_name_length);
		*pset_len = length - 1;
	}
	hrf_return(class);
}
HRF_NAMES(session_get_nth_pset);

/* Arguments of programs: strings of equal length with a stride of strings; a blank one ends the list. NULL: no memory. */
static char **arguments(const char *texts, size_t length, size_t stride)
{
	size_t n = 0, blanks;
	for (;; n++) {
		for (blanks = 0; blanks < length && texts[n * stride * length + blanks] == ' '; blanks++)
			;
		if (blanks == length)
			break;
	}
	char **list = calloc(n + 1, sizeof *list);
	for (size_t i = 0; list && i < n; i++)
		list[i] = hrf_string(texts + i * stride * length, length);
	return list;
}

static void free_arguments(char **list)
{
	for (size_t i = 0; list && list[i]; i++)
		free(list[i]);
	free(list);
}

void pmpi_comm_spawn_(char *command, char *argv, MPI_Fint *maxprocs, MPI_Fint *info, MPI_Fint *root, MPI_Fint *comm,
		      MPI_Fint *intercomm, MPI_Fint *errcodes, MPI_Fint *ierror, size_t command_length, size_t argv_length);
void pmpi_comm_spawn_(char *command, char *argv, MPI_Fint *maxprocs, MPI_Fint *info, MPI_Fint *root, MPI_Fint *comm,
		      MPI_Fint *intercomm, MPI_Fint *errcodes, MPI_Fint *ierror, size_t command_length, size_t argv_length)
{
	char *command_c = hrf_string(command, command_length);
	char **argv_c = argv == hrmpi_argv_null_ ? MPI_ARGV_NULL : arguments(argv, argv_length, 1);
	MPI_Comm new = MPI_COMM_NULL;
	int class = PMPI_Comm_spawn(command_c, argv_c, *maxprocs, hrf_info(*info), *root, hrf_comm(*comm), &new,
				    hrf_integers(errcodes));
	if (class == MPI_SUCCESS)
		*intercomm = PMPI_Comm_toint(new);
	free_arguments(argv_c);
	free(command_c);
	hrf_return(class);
}
HRF_NAMES(comm_spawn);

void pmpi_comm_spawn_multiple_(MPI_Fint *count, char *commands, char *argvs, MPI_Fint *maxprocs, MPI_Fint *infos, MPI_Fint *root,
			       MPI_Fint *comm, MPI_Fint *intercomm, MPI_Fint *errcodes, MPI_Fint *ierror,
			       size_t commands_length, size_t argvs_length);
void pmpi_comm_spawn_multiple_(MPI_Fint *count, char *commands, char *argvs, MPI_Fint *maxprocs, MPI_Fint *infos, MPI_Fint *root,
			       MPI_Fint *comm, MPI_Fint *intercomm, MPI_Fint *errcodes, MPI_Fint *ierror,
			       size_t commands_length, size_t argvs_length)
{
	struct hrf_handles command_c, argv_c, info_c;
	int n = *count > 0 ? *count : 0;
	MPI_Comm new = MPI_COMM_NULL;
	hrf_start(&command_c, n);
	hrf_start(&argv_c, n);
	hrf_start(&info_c, n);
	for (int i = 0; i < n; i++) {
		command_c.handle[i] = hrf_string(commands + (size_t)i * commands_length, commands_length);
		info_c.handle[i] = hrf_info(infos[i]);
		argv_c.handle[i] = argvs == hrmpi_argvs_null_ ? NULL : arguments(argvs + (size_t)i * argvs_length, argvs_length, (size_t)n);
	}
	int class = PMPI_Comm_spawn_multiple(n, (char **)command_c.handle,
					     argvs == hrmpi_argvs_null_ ? MPI_ARGVS_NULL : (char ***)argv_c.handle, maxprocs,
					     (const MPI_Info *)info_c.handle, *root, hrf_comm(*comm), &new, hrf_integers(errcodes));
	if (class == MPI_SUCCESS)
		*intercomm = PMPI_Comm_toint(new);
	for (int i = 0; i < n; i++) {
		free(command_c.handle[i]);
		free_arguments(argv_c.handle[i]);
	}
	hrf_end(&command_c);
	hrf_end(&argv_c);
	hrf_end(&info_c);
	hrf_return(class);
}
HRF_NAMES(comm_spawn_multiple);
