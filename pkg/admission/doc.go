// SPDX-License-Identifier: Apache-2.0

// Package admission speaks the API server's AdmissionReview over HTTPS. It knows no rule:
// a judge, which is a function of the review, gives the answer.
//
//	server.go      TLS, the client certificate of the API server, the limits of the port
//	connection.go  ends connections that are old, so that a new replica gets work
//	handler.go     one review from HTTP to the judge and back
//	limit.go       bounds the reviews and bytes in work, in all and of each caller
//	body.go        reads bodies into buffers that are used again
//	scan.go        review.go  decode a review without parsing its objects
//	answer.go      denial.go  encode an answer
//
// NewHandler never refuses a write. A review that cannot be judged is allowed with the
// verdict "unassessed" and a reason; it is counted and written to the audit log, so
// that it never looks like an object that nobody guards. NewFailClosed is for a judge
// whose work must not be left out: it denies a review that cannot be judged, with a
// request to try again.
//
// The guard's judge is package admit of pkg/specguard, the one that puts proxies into
// pods is package admission of pkg/traffic/inject.
//
// Adapter. It uses the network, logs, metrics, random numbers and the clock.
package admission
