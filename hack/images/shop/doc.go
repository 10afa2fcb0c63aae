// SPDX-License-Identifier: Apache-2.0

// Command shop is the service that the demo deploys, twice: it says who it is,
// so that a changed version, port or container shows at once.
//
// It is configured by environment variables:
//
//	SHOP_NAME      what it calls itself (default: the host name)
//	SHOP_VERSION   version that it claims to be (default "dev")
//	SHOP_ADDRESS   where it listens (default ":8080")
//	SHOP_UPSTREAM  URL of another shop; /checkout asks it and shows both answers
//
// Paths: / and /checkout answer in JSON, /healthz answers "ok". On SIGTERM it
// stops accepting, finishes the requests that it has, and exits with status 0.
package main
