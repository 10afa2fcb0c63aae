// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Labels that mark what a write to a target belongs to. A write of a step sets
// the first two in the same request; a fence sets the third alone.
const (
	// LabelPlan holds the plan's uid.
	LabelPlan = "plumbline.dev/plan"
	// LabelStep holds the index of the step in decimal.
	LabelStep = "plumbline.dev/step"
	// LabelFence marks a target so that a write still under way conflicts. It
	// holds the plan's uid, a dot and the index of the step.
	LabelFence = "plumbline.dev/fence"
	// LabelStandby marks the Deployment that answers the requests of a target during its repair. It
	// holds the plan's uid, the index of the step and the number of the standby, with dots between.
	LabelStandby = "plumbline.dev/standby"
	// LabelReleaseWork holds the uid of the ReleaseWork whose write it is.
	LabelReleaseWork = "plumbline.dev/release-work"
	// LabelReleaseWorkFence marks a target so that a write still under way for a ReleaseWork
	// conflicts. It holds the uid of the work.
	LabelReleaseWorkFence = "plumbline.dev/release-work-fence"
)

// bookkeeping is what our service accounts write about themselves: no target of
// a remediation is ever in these groups. Core events are left out too.
var bookkeeping = []string{
	"plumbline.dev", "coordination.k8s.io", "events.k8s.io", "authorization.k8s.io", "authentication.k8s.io",
}

// AuditFilter says which writes count.
type AuditFilter struct {
	// Users are the names of our service accounts, as in
	// "system:serviceaccount:plumbline-system:plumbline-assessor".
	Users []string
	// Resources that may be targets, as in "deployments.apps" or "configmaps".
	// Empty: all but what Plumbline writes about itself, which also finds
	// writes to what was never a target.
	Resources []string
}

// AuditLog is what was read of one or several files of the audit log.
type AuditLog struct {
	// Writes by our users that may have changed something, in the order read.
	Writes []Write
	// Events read, by anybody. First and Last are their times.
	Events      int
	First, Last time.Time
	// Damaged counts lines that are no event. A last line without its end is one
	// that is just being written; it is not counted.
	Damaged int

	seen map[string]bool
}

// Write is one request that changed an object, or may have.
type Write struct {
	AuditID   string
	At        time.Time
	User      string
	Verb      string
	Group     string
	Resource  string
	Kind      string // empty when there was no body to read it from
	Namespace string
	Name      string
	UID       string
	// Certain is false when the API server answered with an error of its own,
	// such as a timeout: then the write may have taken place all the same.
	Certain bool
	// Bodies is false when the audit level or a size limit left them out.
	Bodies bool
	// Before is the resourceVersion that the request demanded, After that of
	// the answer; either may be empty.
	Before, After string
	// Plan, Step, Fence and Standby are the marks.
	Plan, Step     string
	Fence, Standby bool
	// Work is the uid of a ReleaseWork, if the write is marked as that of one, or as its fence.
	Work string
}

// auditEvent is what is needed of audit.k8s.io/v1 Event.
type auditEvent struct {
	Kind             string          `json:"kind"`
	APIVersion       string          `json:"apiVersion"`
	AuditID          string          `json:"auditID"`
	Stage            string          `json:"stage"`
	RequestURI       string          `json:"requestURI"`
	Verb             string          `json:"verb"`
	User             auditUser       `json:"user"`
	ImpersonatedUser *auditUser      `json:"impersonatedUser"`
	ObjectRef        *auditReference `json:"objectRef"`
	ResponseStatus   *struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	RequestObject  json.RawMessage `json:"requestObject"`
	ResponseObject json.RawMessage `json:"responseObject"`
	Received       time.Time       `json:"requestReceivedTimestamp"`
	StageAt        time.Time       `json:"stageTimestamp"`
}

type auditUser struct {
	Username string `json:"username"`
}

type auditReference struct {
	Resource    string `json:"resource"`
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
	UID         string `json:"uid"`
	APIGroup    string `json:"apiGroup"`
	Subresource string `json:"subresource"`
}

// maxAuditLine bounds one event. The largest body that the API server takes is
// 3 MiB, and an event may hold two with room for escapes.
const maxAuditLine = 32 << 20

// errLineTooLong ends the reading: what comes after the line is not found.
var errLineTooLong = errors.New("line too long")

// ReadAudit adds the events of one file to the log: JSON lines as the API
// server writes them, plain or compressed with gzip. Rotated files may be read
// in any order and may overlap.
func ReadAudit(r io.Reader, f AuditFilter, log *AuditLog) error {
	in, err := uncompressed(r)
	if err != nil {
		return fmt.Errorf("reading audit log: %w", err)
	}
	if log.seen == nil {
		log.seen = map[string]bool{}
	}
	for n := 1; ; n++ {
		line, err := readLine(in)
		ended := errors.Is(err, io.EOF)
		if err != nil && !ended {
			return fmt.Errorf("reading audit log, line %d: %w", n, err)
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			log.add(line, f, ended)
		}
		if ended {
			return nil
		}
	}
}

func uncompressed(r io.Reader) (*bufio.Reader, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	magic, err := in.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return in, nil
	}
	unzipped, err := gzip.NewReader(in)
	if err != nil {
		return nil, err
	}
	return bufio.NewReaderSize(unzipped, 64<<10), nil
}

func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxAuditLine {
			return nil, errLineTooLong
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// add one line. An event that cannot be decoded may hide a write, so it is
// counted and reported, never passed over.
func (l *AuditLog) add(line []byte, f AuditFilter, last bool) {
	var e auditEvent
	if err := json.Unmarshal(line, &e); err != nil {
		if !last || json.Valid(line) {
			l.Damaged++
		}
		return
	}
	if e.Kind != "Event" || !strings.HasPrefix(e.APIVersion, "audit.k8s.io/") {
		l.Damaged++
		return
	}
	l.Events++
	if l.First.IsZero() || e.Received.Before(l.First) {
		l.First = e.Received
	}
	if e.Received.After(l.Last) {
		l.Last = e.Received
	}
	if w, ok := e.write(f); ok && !l.seen[w.AuditID] {
		l.seen[w.AuditID] = true
		l.Writes = append(l.Writes, w)
	}
}

// write is the event as a write that counts, if it is one. Only the end of a
// request says what became of it; a panic is an end too.
func (e auditEvent) write(f AuditFilter) (Write, bool) {
	ended := e.Stage == "ResponseComplete" || e.Stage == "Panic"
	user := e.User.Username
	if e.ImpersonatedUser != nil {
		user = e.ImpersonatedUser.Username // that is who the API server took it for
	}
	switch {
	case !ended, e.ObjectRef == nil, e.dryRun():
		return Write{}, false
	case !slices.Contains(f.Users, user), !f.counts(*e.ObjectRef):
		return Write{}, false
	case !slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, e.Verb), e.returnsFields():
		return Write{}, false
	}
	code := 0
	if e.ResponseStatus != nil {
		code = e.ResponseStatus.Code
	}
	if code >= 300 && code < 500 {
		return Write{}, false // refused before anything was stored
	}
	return e.details(user, code >= 200 && code < 300), true
}

func (f AuditFilter) counts(ref auditReference) bool {
	if len(f.Resources) > 0 {
		name := ref.Resource
		if ref.APIGroup != "" {
			name += "." + ref.APIGroup
		}
		return slices.Contains(f.Resources, name)
	}
	return !slices.Contains(bookkeeping, ref.APIGroup) && (ref.APIGroup != "" || !bookkeepingOfCore(ref))
}

// publicKeys is the ConfigMap in which the executor publishes its public keys.
const publicKeys = "plumbline-evidence"

func bookkeepingOfCore(ref auditReference) bool {
	return ref.Resource == "events" || ref.Resource == "configmaps" && ref.Name == publicKeys
}

// returnsFields says that a request is a merge patch of managedFields alone, bound to a
// version: it changes no field of the object, and no record tells of it.
func (e auditEvent) returnsFields() bool {
	var patch map[string]map[string]json.RawMessage
	if e.Verb != "patch" || json.Unmarshal(e.RequestObject, &patch) != nil || len(patch) != 1 {
		return false
	}
	for member := range patch["metadata"] {
		if member != "uid" && member != "resourceVersion" && member != "managedFields" {
			return false
		}
	}
	return patch["metadata"]["managedFields"] != nil && patch["metadata"]["resourceVersion"] != nil
}

// dryRun is asked for in the query, or in the options that a deletion carries.
func (e auditEvent) dryRun() bool {
	_, query, _ := strings.Cut(e.RequestURI, "?")
	values, err := url.ParseQuery(query)
	if err == nil && slices.Contains(values["dryRun"], "All") {
		return true
	}
	var options struct {
		Kind   string   `json:"kind"`
		DryRun []string `json:"dryRun"`
	}
	return strings.HasPrefix(e.Verb, "delete") && json.Unmarshal(e.RequestObject, &options) == nil &&
		options.Kind == "DeleteOptions" && slices.Contains(options.DryRun, "All")
}
