// SPDX-License-Identifier: Apache-2.0

// Command shop is the service that the demo deploys, several times: it says who it
// is, so that a changed version, port or container shows at once.
//
// It is configured by environment variables:
//
//	SHOP_NAME           what it calls itself (default: the host name)
//	SHOP_VERSION        version that it claims to be (default "dev")
//	SHOP_ADDRESS        where it listens (default ":8080")
//	SHOP_UPSTREAM       URL of another shop; /checkout asks it and shows both answers
//	SHOP_VISITS         URL of another shop that it orders from, again and again
//	SHOP_VISIT_RATE     orders a second (default 20), whether or not there are answers
//	SHOP_VISIT_USERS    users who order in turn, each with the header x-user (default 0: nobody is known)
//	SHOP_VISIT_COOKIES  "true": each user has cookies instead of the header
//	SHOP_VISIT_HEADER   "name: value" that all orders have besides
//	SHOP_CALL_RATE      orders a second by gRPC besides, to the same URL (default 0)
//	SHOP_SOCKET_RATE    orders a second on WebSockets besides, to the same URL (default 0)
//	SHOP_FAULTS         how bad the version is: "errors=5,hangs=1,calls=5,delay=300ms,crash=10s,hoards=10s"
//	                    has 5 % of the orders fail, 1 % never answered, 5 % of the calls of gRPC fail, each
//	                    answer later, the process end, and take 256 MiB; health stays good
//
// Paths: /, /checkout and POST /orders answer in JSON, /healthz answers "ok", /metrics has
// one metric for Prometheus, /socket is a WebSocket
// that answers orders, and /visits says what became of its own orders, by gRPC and on WebSockets
// apart. The port takes the calls plumbline.shop.Orders/Place of gRPC without TLS as well. On SIGTERM it stops accepting, finishes
// the requests that it has, and exits with status 0.
package main
