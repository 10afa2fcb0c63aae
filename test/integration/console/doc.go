// SPDX-License-Identifier: Apache-2.0

// Package console tests the pages of the console in a real browser, with the golden files of the pages:
// axe-core finds no barrier on any page, light and dark. The tests of cli/roles open the pages of a console
// on a real API server.
package console
