// SPDX-License-Identifier: Apache-2.0

// Package proxieshttp shows the proxies of a discovery server: what each was sent,
// what it has confirmed, what it waits for and why.
//
//	GET /proxies                     one entry for each proxy, page by page
//	GET /proxies/{namespace}/{pod}   all resources of the proxy of a pod
//	GET /proxies.html                both, for a browser
//
// The query narrows it down: namespace, pod, service ([namespace/]name), stage, limit,
// continue. [Handler] answers, [Client] asks by way of the API server's proxy to the
// pod, so that the rights of who asks decide.
//
// It is served without TLS and without a password, on the port of the health checks,
// as metrics are on theirs: it names pods, Services and versions, and has nothing out
// of a Secret and no request of anybody. A NetworkPolicy says who reaches the port.
// Nothing can be changed by it. It keeps the work bounded: a page is short, the
// resources of one pod only are listed, and few requests are answered at once.
package proxieshttp
