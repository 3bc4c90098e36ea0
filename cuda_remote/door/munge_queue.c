/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread that asks munged about credentials, one after the other. */
#define _GNU_SOURCE /* explicit_bzero */
#include "cuda_remote/door/munge.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define QUESTIONS_MAX 256

struct question {
	struct question *next;
	char credential[DOOR_CREDENTIAL_BYTES];
	struct door_munge_result result; /* number from the start */
};

struct list {
	struct question *first, **last;
};

struct door_munge_queue {
	pthread_mutex_t lock; /* guards all members below but fd */
	pthread_cond_t more;
	struct list open, answered;
	unsigned count;       /* of questions, answered or not */
	bool closed;          /* the thread frees the queue */
	int fd;
};

static void list_add(struct list *list, struct question *question)
{
	question->next = NULL;
	*list->last = question;
	list->last = &question->next;
}

static struct question *list_take(struct list *list)
{
	struct question *question = list->first;
	if (question && !(list->first = question->next))
		list->last = &list->first;
	return question;
}

static void question_free(struct question *question)
{
	explicit_bzero(question, sizeof *question);
	free(question);
}

static void queue_free(struct door_munge_queue *queue)
{
	struct question *at;
	while ((at = list_take(&queue->open)) || (at = list_take(&queue->answered)))
		question_free(at);
	close(queue->fd);
	pthread_cond_destroy(&queue->more);
	pthread_mutex_destroy(&queue->lock);
	free(queue);
}

static void *work(void *argument)
{
	struct door_munge_queue *queue = argument;
	pthread_mutex_lock(&queue->lock);
	while (!queue->closed) {
		struct question *question = list_take(&queue->open);
		if (!question) {
			pthread_cond_wait(&queue->more, &queue->lock);
			continue;
		}
		pthread_mutex_unlock(&queue->lock);
		door_munge_decode(question->credential, &question->result);
		pthread_mutex_lock(&queue->lock);
		list_add(&queue->answered, question);
		(void)!write(queue->fd, &(uint64_t){ 1 }, 8);
	}
	pthread_mutex_unlock(&queue->lock);
	queue_free(queue);
	return NULL;
}

/* The process's signals are for its other threads. */
static int start(struct door_munge_queue *queue)
{
	pthread_t thread;
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int error = -pthread_create(&thread, NULL, work, queue);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!error)
		pthread_detach(thread);
	return error;
}

int door_munge_open(struct door_munge_queue **out)
{
	struct door_munge_queue *queue = calloc(1, sizeof *queue);
	if (!queue)
		return -ENOMEM;
	queue->open.last = &queue->open.first;
	queue->answered.last = &queue->answered.first;
	pthread_mutex_init(&queue->lock, NULL);
	pthread_cond_init(&queue->more, NULL);
	queue->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int error = queue->fd < 0 ? -errno : start(queue);
	if (error) {
		queue_free(queue);
		return error;
	}
	*out = queue;
	return 0;
}

int door_munge_fd(const struct door_munge_queue *queue)
{
	return queue->fd;
}

int door_munge_ask(struct door_munge_queue *queue, uint64_t number, const char credential[DOOR_CREDENTIAL_BYTES])
{
	struct question *question = calloc(1, sizeof *question);
	if (!question)
		return -ENOMEM;
	memcpy(question->credential, credential, sizeof question->credential);
	question->result.number = number;
	pthread_mutex_lock(&queue->lock);
	bool full = queue->count == QUESTIONS_MAX;
	if (!full) {
		queue->count++;
		list_add(&queue->open, question);
		pthread_cond_signal(&queue->more);
	}
	pthread_mutex_unlock(&queue->lock);
	if (full)
		question_free(question);
	return full ? -EAGAIN : 0;
}

bool door_munge_take(struct door_munge_queue *queue, struct door_munge_result *result)
{
	uint64_t events;
	pthread_mutex_lock(&queue->lock);
	struct question *question = list_take(&queue->answered);
	queue->count -= question != NULL;
	if (!queue->answered.first)
		(void)!read(queue->fd, &events, sizeof events);
	pthread_mutex_unlock(&queue->lock);
	if (!question)
		return false;
	*result = question->result;
	question_free(question);
	return true;
}

void door_munge_close(struct door_munge_queue *queue)
{
	if (!queue)
		return;
	pthread_mutex_lock(&queue->lock);
	queue->closed = true;
	pthread_cond_signal(&queue->more);
	pthread_mutex_unlock(&queue->lock);
}
