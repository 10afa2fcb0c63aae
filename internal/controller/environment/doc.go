// SPDX-License-Identifier: Apache-2.0

// Package environment keeps the status of Environments, and answers which Environment a
// namespace belongs to now. The package of the same name beside internal/controller has the
// rule. An Environment tells in its Degraded condition which of its namespaces belong to
// another one.
package environment
