// SPDX-License-Identifier: Apache-2.0

package remediation

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
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

// AuditLog is the audit log of an API server, as a file that grows. It reads each line
// once, however often it is asked.
type AuditLog struct {
	path string

	mu     sync.Mutex
	offset int64 // of the first byte that was not read
	read   evidence.AuditLog
}

// NewAuditLog prepares one in a directory.
func NewAuditLog(directory string) (*AuditLog, error) {
	if err := os.WriteFile(filepath.Join(directory, "policy.yaml"), []byte(auditPolicy), 0o600); err != nil {
		return nil, fmt.Errorf("writing the audit policy: %w", err)
	}
	return &AuditLog{path: filepath.Join(directory, "audit.log")}, nil
}

// Path returns the path of the file.
func (a *AuditLog) Path() string { return a.path }

// WithAudit has an API server write the log.
func WithAudit(log *AuditLog) apiserver.Option {
	return func(server *envtest.Environment) {
		arguments := server.ControlPlane.GetAPIServer().Configure()
		arguments.Append("audit-policy-file", filepath.Join(filepath.Dir(log.path), "policy.yaml"))
		arguments.Append("audit-log-path", log.path)
	}
}

// Writes are those of the executor to Deployments of a namespace.
func (a *AuditLog) Writes(namespace string) (*evidence.AuditLog, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.follow(); err != nil {
		return nil, err
	}
	log := &evidence.AuditLog{Events: a.read.Events, First: a.read.First, Last: a.read.Last, Damaged: a.read.Damaged}
	for i := range a.read.Writes {
		if a.read.Writes[i].Namespace == namespace {
			log.Writes = append(log.Writes, a.read.Writes[i])
		}
	}
	return log, nil
}

// follow reads the lines that have been added and are complete.
func (a *AuditLog) follow() error {
	file, err := os.Open(a.path)
	if err != nil {
		return fmt.Errorf("opening the audit log: %w", err)
	}
	defer func() { _ = file.Close() }() // only read
	added, err := io.ReadAll(io.NewSectionReader(file, a.offset, math.MaxInt64-a.offset))
	if err != nil {
		return fmt.Errorf("reading the audit log: %w", err)
	}
	complete := added[:bytes.LastIndexByte(added, '\n')+1]
	filter := evidence.AuditFilter{Users: []string{ExecutorUser}, Resources: []string{"deployments.apps"}}
	if err := evidence.ReadAudit(bytes.NewReader(complete), filter, &a.read); err != nil {
		return err
	}
	a.offset += int64(len(complete))
	return nil
}
