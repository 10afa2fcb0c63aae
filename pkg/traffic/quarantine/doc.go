// SPDX-License-Identifier: Apache-2.0

// Package quarantine decides whether a workload may be kept from requests: not if no proxy
// would know the difference, and not if requests would be left without an endpoint.
package quarantine
