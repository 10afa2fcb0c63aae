// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ReasonRequestsFail is the reason of Ready of a TrafficRouter whose program did not answer the last request.
const ReasonRequestsFail = "RequestsFail"
