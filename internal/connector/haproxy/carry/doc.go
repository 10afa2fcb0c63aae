// SPDX-License-Identifier: Apache-2.0

// Package carry brings a HAProxy that runs to ports, and says whether it is there.
//
//	ports ──Render──▶ files ──haproxy -c on a copy──▶ written ──▶ reload, if the structure is another
//	                                                         └──▶ `set server`, if it is not
//	      ──▶ `set map` on every worker ──▶ read back from every worker
//
// Files are written before the program is told, so a program that starts again comes up right. A
// configuration that the program refuses, at the check or at the reload, is a [reload.RefusedError] with the
// program's own words, and the files of before are there again. A refusal at the check comes before any word to
// the program.
package carry
