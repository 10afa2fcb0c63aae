// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/printable"
)

// MaxWebhookAnswer in bytes.
const MaxWebhookAnswer = 64 << 10

// ParseWebhook reads the answer to a webhook: status 200 and the JSON object
// {"result":"Pass|Fail|Wait","message":"…"}. All else waits, and the message says why.
func ParseWebhook(status int, body []byte) (Result, string) {
	switch {
	case status != 200:
		return Wait, fmt.Sprintf("the receiver answers %d, want 200", status)
	case len(body) > MaxWebhookAnswer:
		return Wait, fmt.Sprintf("the answer has more than %d bytes", MaxWebhookAnswer)
	}
	var in struct {
		Result  string `json:"result"`
		Message string `json:"message"`
	}
	if err := json.Unmarshal(body, &in); err != nil || !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
		return Wait, `the answer is not the JSON object {"result":"Pass|Fail|Wait"}`
	}
	switch r := Result(in.Result); r {
	case Pass, Fail, Wait:
		return r, printable.Line(in.Message, maxMessage)
	case NoData:
	}
	return Wait, fmt.Sprintf("the result is %q, want Pass, Fail or Wait", printable.Line(in.Result, maxNameBytes))
}

// ParseTold reads the answer to a webhook that is told: each status from 200 to 299 passes.
func ParseTold(status int) (Result, string) {
	if status >= 200 && status < 300 {
		return Pass, ""
	}
	return Wait, fmt.Sprintf("the receiver answers %d", status)
}

// Subject is the run that a webhook is asked about.
type Subject struct {
	Names
	// UID of the release.
	UID string
	// From and To are the hashes of the revisions of Stable and Canary.
	From, To string
	// Reason and Message say why the run ended, of AfterRollback.
	Reason, Message string
}

// ID of a question is the same each time that one webhook is asked about one point of a run, and differs
// for all others.
func ID(uid string, q Question) string {
	parts := []string{uid, string(q.Kind), q.Name, strconv.FormatInt(q.Run, 10), string(q.Event), strconv.Itoa(q.Stage), strconv.Itoa(q.Restart)}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return "evt_" + hex.EncodeToString(sum[:16])
}

// request is the body that a webhook gets.
type request struct {
	Type      string      `json:"type"`
	Timestamp string      `json:"timestamp"`
	Data      requestData `json:"data"`
}

type requestData struct {
	ID        string          `json:"id"`
	Webhook   string          `json:"webhook"`
	Event     string          `json:"event"`
	Namespace string          `json:"namespace"`
	Release   string          `json:"release"`
	Service   string          `json:"service"`
	Run       int64           `json:"run"`
	Stage     int             `json:"stage,omitempty"`
	Restart   int             `json:"restart,omitempty"`
	Canary    requestRevision `json:"canary"`
	Stable    requestRevision `json:"stable"`
	Reason    string          `json:"reason,omitempty"`
	Message   string          `json:"message,omitempty"`
}

type requestRevision struct {
	Variation string `json:"variation"`
	Revision  string `json:"revision"`
}

// eventTypes are the types of requests, by event.
var eventTypes = map[Event]string{
	BeforeStart: "rollout.before_start", BeforeStage: "rollout.before_stage", DuringStage: "rollout.during_stage",
	BeforePromotion: "rollout.before_promotion", AfterRollback: "rollout.after_rollback",
}

// Request renders the body of a question at a time.
func Request(s Subject, q Question, at time.Time) ([]byte, error) {
	body, err := json.Marshal(request{
		Type: eventTypes[q.Event], Timestamp: at.UTC().Format(time.RFC3339),
		Data: requestData{
			ID: ID(s.UID, q), Webhook: q.Name, Event: string(q.Event), Namespace: s.Namespace, Release: s.Release, Service: s.Service,
			Run: q.Run, Stage: q.Stage, Restart: q.Restart,
			Canary: requestRevision{s.Canary, s.To}, Stable: requestRevision{s.Stable, s.From}, Reason: s.Reason, Message: s.Message,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("rendering the question %s about %s: %w", q.Name, q.Point, err)
	}
	return body, nil
}
