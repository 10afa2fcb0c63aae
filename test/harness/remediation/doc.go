// SPDX-License-Identifier: Apache-2.0

// Package remediation is a world in which plans are carried out: an API server with
// an audit log ([WithAudit]), guarded namespaces in an Environment of their own
// ([NewWorld]) with a policy and with drift, a plan as the assessor would make it
// ([World.Plan]), rollouts that succeed ([Rollouts]), and the oracle that says what
// is wrong in the end ([World.Verdict]), or with the records alone ([World.Unproven]).
package remediation
