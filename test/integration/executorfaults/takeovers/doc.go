// SPDX-License-Identifier: Apache-2.0

// Package takeovers kills the executor at each of the ten writes of a step, beside a
// Redis, and has it started again or a standby take over. Here too Redis breaks beside
// an executor.
package takeovers
