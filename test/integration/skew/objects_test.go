// SPDX-License-Identifier: Apache-2.0

//go:build integration

package skew

import (
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// xdsUser is the service account of the discovery server.
const xdsUser = "system:serviceaccount:" + rendered.Namespace + ":plumbline-xds"

// creators are the service accounts that create objects of a kind. People create all others.
var creators = map[string]string{
	"Baseline": remediation.AssessorUser, "BaselineRevision": remediation.AssessorUser,
	"EffectivenessAssessment": remediation.AssessorUser, "RemediationPlan": remediation.AssessorUser,
	"RemediationLedger": remediation.ExecutorUser, "ReleaseWork": xdsUser,
}

// statusWriters are the service accounts that write the status of a kind.
var statusWriters = map[string]string{
	"ABRelease": xdsUser, "Baseline": remediation.AssessorUser, "RemediationRequest": remediation.AssessorUser,
	"RemediationPlan": remediation.ExecutorUser, "RemediationLedger": remediation.ExecutorUser, "ReleaseWork": remediation.ExecutorUser,
}

// clientOf returns a client of a user or, for an empty name, of platform.
func (w *world) clientOf(user string) client.Client {
	w.t.Helper()
	var c client.Client
	var err error
	if user == "" {
		c, err = w.cluster.As(platform)
	} else {
		c, err = apiserver.As(w.server.Config, user)
	}
	must(w.t, err)
	return c
}

// createObjects stores the objects of a file, each with its status, and returns them as read.
func (w *world) createObjects(file string) []*unstructured.Unstructured {
	w.t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", file))
	must(w.t, err)
	objects, err := rendered.Objects(string(raw))
	must(w.t, err)
	for _, o := range objects {
		status := o.Object["status"]
		must(w.t, w.clientOf(creators[o.GetKind()]).Create(w.t.Context(), o, client.FieldValidation(metav1.FieldValidationStrict)))
		if status == nil {
			continue
		}
		o.Object["status"] = status
		must(w.t, w.clientOf(statusWriters[o.GetKind()]).Status().Update(w.t.Context(), o, client.FieldValidation(metav1.FieldValidationStrict)))
	}
	return objects
}

// readContents reads objects again, and returns their spec and status by their names.
func (w *world) readContents(objects []*unstructured.Unstructured) map[string]map[string]any {
	w.t.Helper()
	contents := map[string]map[string]any{}
	for _, o := range objects {
		now := &unstructured.Unstructured{}
		now.SetGroupVersionKind(o.GroupVersionKind())
		must(w.t, w.cluster.Admin.Get(w.t.Context(), client.ObjectKeyFromObject(o), now))
		content := map[string]any{"spec": now.Object["spec"]}
		if status := now.Object["status"]; status != nil {
			content["status"] = status
		}
		contents[rendered.ID(o)] = content
	}
	return contents
}
