// SPDX-License-Identifier: Apache-2.0

// Package answers remembers answers of the API server, each until its own end.
//
// Callers with the same question at the same time get one answer: a question is asked once at a time, and a
// bounded number of questions is asked at once. Errors are never remembered. The number of answers is bounded, and the
// answer that was used least recently goes first.
package answers
