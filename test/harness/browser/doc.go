// SPDX-License-Identifier: Apache-2.0

// Package browser opens addresses of a test in a real browser, chromium-headless-shell, which make
// preflight installs.
package browser
