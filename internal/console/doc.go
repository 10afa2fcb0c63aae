// SPDX-License-Identifier: Apache-2.0

// Package console is the door by which the plugin serves the console and the REST API on the machine of
// the user: on 127.0.0.1 alone, with the kubeconfig of the user, and to callers with the key alone.
//
// The key is in the address that the plugin prints ([Door.URL]). The first request turns it into a
// cookie that no script reads and no other site sends; each request with neither is
// answered with 401. Package pages below answers the requests of browsers, and package view makes the HTML.
package console
