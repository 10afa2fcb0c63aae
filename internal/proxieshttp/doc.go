// SPDX-License-Identifier: Apache-2.0

// Package proxieshttp shows the proxies of a discovery server: what each was sent,
// what it has acknowledged, what it waits for and why.
//
//	GET /proxies                     one entry for each proxy, page by page
//	GET /proxies/{namespace}/{pod}   all resources of the proxy of a pod
//	GET /proxies.html                both, for a browser
//
// The query narrows it down: namespace, pod, service ([namespace/]name), stage, limit,
// continue. [Handler] answers, [Client] asks.
//
// The port is at loopback addresses of the pod, without TLS and without a password. The
// way to it is the API server's forwarding of ports, which asks for a token and for the
// right to create pods/portforward in Plumbline's namespace. What is told names pods,
// Services and versions, and has nothing out of a Secret and nothing of any request.
// Nothing can be changed. The work is bounded: a page is short, the resources of one pod
// only are listed, and few requests are answered at once.
package proxieshttp
