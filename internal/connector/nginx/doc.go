// SPDX-License-Identifier: Apache-2.0

// Package nginx says in nginx's words what package envoyxds reads of a port.
//
//	ports ──[Render]──▶ Files: plumbline.conf (http), request.conf (location), main.conf (main)
//	lines of the log ──[ParseLine]──▶ the arm, the status, and the sequence that decided the request
//	processes, lines ──[JudgeWorkers]──▶ workers of before a reload that may still decide requests
//
// A user includes main.conf at the top, plumbline.conf in the http block, and writes
// `proxy_pass http://$plb_NAMESPACE_SERVICE`, or with _PORT if the Service has several ports. The
// value is the name of an upstream, which ends with the sequence of the split. A hyphen of a name is
// __ in a variable.
//
// nginx reads a configuration once, so each change is a reload. [Files.Generation] is a digest of the
// files; the probe on a unix socket answers with the digest that a worker has loaded.
//
// # What differs from an Envoy
//
// [Check] refuses what nginx cannot do. split_clients hashes with Murmur2: the variation of a visitor
// at nginx is not that of the visitor at an Envoy. A header that comes twice is joined by a comma.
// Time-outs of connections are those of the user's locations, since an upstream has none. Requests by
// grpc_pass have no line, because nginx has no variable with the upstream of those.
package nginx
