// SPDX-License-Identifier: Apache-2.0

// Package carry brings an nginx that runs to ports, and says whether it is there.
//
//	ports ──Render──▶ files ──nginx -t on a copy──▶ written ──▶ SIGHUP ──▶ the probe has the generation
//	      ──▶ no worker of before may decide a request: its sockets are closed, and its kept connections ended
//
// Files are written before the program is told, so a program that starts again comes up right. A
// configuration that nginx refuses at the check is a [reload.RefusedError] with nginx's own words, and comes
// before any word to the program. After a reload that nginx does not carry out, the files of before are there
// again.
package carry
