// SPDX-License-Identifier: Apache-2.0

//go:build failpoints

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
)

// failingTransport lets requests go wrong.
type failingTransport struct {
	next   http.RoundTripper
	points *failpoints
}

// RoundTrip implements http.RoundTripper.
func (t *failingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !counts(r) {
		return t.next.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("reading a request to count it: %w", err)
	}
	point := t.points.reached(nameOf(r, body))
	// Whoever sent it may have given it up meanwhile; it arrives all the same, as
	// one does that was in the network already.
	again := r.Clone(context.WithoutCancel(r.Context()))
	again.Body = io.NopCloser(bytes.NewReader(body))
	if point.act != "" {
		// The client's timer closes it. A process that stands still directly before the call
		// of its client has no timer yet, and sends the request whenever it goes on.
		again.Cancel = nil //nolint:staticcheck // clients still use it
	}
	if point.act == actLate {
		go t.later(again)
		return nil, errNoAnswer
	}
	if point.act == "" {
		again = again.WithContext(r.Context())
	}
	point.at(whenBefore)
	response, err := t.next.RoundTrip(again)
	if err == nil && response.StatusCode == http.StatusConflict && point.when == whenAfter {
		t.points.restore(point) // nothing was written; the write is tried again
		return response, nil
	}
	point.at(whenAfter)
	if point.act == actLose && err == nil {
		_ = response.Body.Close() // nobody is to know what it says
		return nil, errNoAnswer
	}
	return response, err
}

// WrappedRoundTripper lets client-go find the transport below.
func (t *failingTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// later sends a request when the file is there, and tells the journal what the
// API server said.
func (t *failingTransport) later(r *http.Request) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if _, err := os.Stat(t.points.release); err == nil {
			break
		}
	}
	result := "failed"
	if response, err := t.next.RoundTrip(r); err == nil {
		result = strconv.Itoa(response.StatusCode)
		_ = response.Body.Close() // its code is all that was wanted
	}
	t.points.mu.Lock()
	defer t.points.mu.Unlock()
	t.points.note("late", result)
}

// uncounted are resources that say nothing about a plan.
var uncounted = []string{"/leases", "/events", "subjectaccessreviews", "/configmaps"}

// counts says whether a request is a write.
func counts(r *http.Request) bool {
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		return false
	}
	return r.Body != nil && r.URL.Query().Get("dryRun") == "" &&
		!slices.ContainsFunc(uncounted, func(part string) bool { return strings.Contains(r.URL.Path, part) })
}

// nameOf says what a write does, without names that differ from run to run.
func nameOf(r *http.Request, body []byte) string {
	switch path := r.URL.Path; {
	case strings.Contains(path, "/remediationplans/"):
		return planName(body)
	case strings.Contains(path, "/remediationledgers"):
		return ledgerName(r.Method, body)
	case strings.Contains(path, "/baselines/"):
		return claimName(body)
	case strings.Contains(path, "/environments/"):
		return "the Environment remembers its ledger"
	}
	return targetName(r, body)
}

func planName(body []byte) string {
	var plan v1alpha1.RemediationPlan
	if err := json.Unmarshal(body, &plan); err != nil {
		return "plan: " + err.Error()
	}
	phase := "plan " + string(plan.Status.Phase)
	if meta.IsStatusConditionTrue(plan.Status.Conditions, v1alpha1.ConditionAnnounced) {
		phase += ", announced"
	}
	if plan.Status.DeferralReason != "" {
		phase += ", which waits"
	}
	parts := []string{phase + ":"}
	for i := range plan.Status.Steps {
		s := &plan.Status.Steps[i]
		text := string(s.State)
		if s.Fence != "" && s.State == v1alpha1.StepIntent {
			text += " fenced"
		}
		if s.Settled == v1alpha1.Enabled {
			text += " settled"
		}
		if s.Evidence != nil {
			text += " recorded"
		}
		parts = append(parts, text+",")
	}
	return strings.TrimSuffix(strings.Join(parts, " "), ",")
}

func ledgerName(method string, body []byte) string {
	var l v1alpha1.RemediationLedger
	if err := json.Unmarshal(body, &l); err != nil {
		return "ledger: " + err.Error()
	}
	whose := "the Environment's ledger"
	if l.Name == exec.ClusterLedger {
		whose = "the cluster's ledger"
	}
	if method == http.MethodPost {
		return whose + " is made"
	}
	ended, last := 0, int64(0)
	for i := range l.Status.Entries {
		if l.Status.Entries[i].CompletionTime != nil {
			ended++
		}
	}
	for _, c := range l.Status.Chains {
		last = max(last, c.Sequence)
	}
	return fmt.Sprintf("%s: %d granted, %d ended, %d records", whose, len(l.Status.Entries), ended, last)
}

func claimName(body []byte) string {
	var b v1alpha1.Baseline
	if err := json.Unmarshal(body, &b); err != nil {
		return "claim: " + err.Error()
	}
	if b.Status.PlanName == "" {
		return "let go of " + b.Spec.Target.Name
	}
	return "claim " + b.Spec.Target.Name
}

func targetName(r *http.Request, body []byte) string {
	var object struct {
		Metadata struct {
			Name   string            `json:"name"`
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
	}
	name := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	if err := json.Unmarshal(body, &object); err != nil {
		return "write " + name + ": " + err.Error()
	}
	switch {
	case r.Method == http.MethodPatch: // it changes managedFields alone
		return "return the fields of " + name
	case r.Method == http.MethodPost: // the path names no object
		return "make " + object.Metadata.Name
	case object.Metadata.Labels[evidence.LabelFence] != "":
		return "fence " + name
	}
	return "write " + name
}
