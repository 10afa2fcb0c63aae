// SPDX-License-Identifier: Apache-2.0

package remediation

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/plumbline-dev/plumbline/pkg/remediate/evidence"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
)

// The chart's service accounts.
const (
	AssessorUser = "system:serviceaccount:plumbline-system:plumbline-assessor"
	ExecutorUser = "system:serviceaccount:plumbline-system:plumbline-executor"
)

// auditPolicy has the bodies of what is done to guarded objects.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: RequestResponse
    verbs: [create, update, patch, delete]
    resources: [{group: apps}, {group: batch}]
  - level: None
`

// AuditLog is the audit log of an API server, as a file.
type AuditLog string

// NewAuditLog prepares one in a directory.
func NewAuditLog(directory string) (AuditLog, error) {
	if err := os.WriteFile(filepath.Join(directory, "policy.yaml"), []byte(auditPolicy), 0o600); err != nil {
		return "", fmt.Errorf("writing the audit policy: %w", err)
	}
	return AuditLog(filepath.Join(directory, "audit.log")), nil
}

// WithAudit has an API server write the log.
func WithAudit(log AuditLog) apiserver.Option {
	return func(server *envtest.Environment) {
		arguments := server.ControlPlane.GetAPIServer().Configure()
		arguments.Append("audit-policy-file", filepath.Join(filepath.Dir(string(log)), "policy.yaml"))
		arguments.Append("audit-log-path", string(log))
	}
}

// Writes are those of the executor to Deployments of a namespace.
func (a AuditLog) Writes(namespace string) (*evidence.AuditLog, error) {
	file, err := os.Open(string(a))
	if err != nil {
		return nil, fmt.Errorf("opening the audit log: %w", err)
	}
	defer func() { _ = file.Close() }() // only read
	log := &evidence.AuditLog{}
	filter := evidence.AuditFilter{Users: []string{ExecutorUser}, Resources: []string{"deployments.apps"}}
	if err := evidence.ReadAudit(file, filter, log); err != nil {
		return nil, err
	}
	var own []evidence.Write
	for _, write := range log.Writes {
		if write.Namespace == namespace {
			own = append(own, write)
		}
	}
	log.Writes = own
	return log, nil
}
