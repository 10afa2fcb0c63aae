// SPDX-License-Identifier: Apache-2.0

package clitest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/records"
	"github.com/plumbline-dev/plumbline/internal/evidencehttp"
	"github.com/plumbline-dev/plumbline/internal/portforward"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Served returns the objects of a cluster whose executor serves the archive: its pod, its keys, and the ledger that knows
// the end of the chain.
func (a *Archive) Served() []client.Object {
	return []client.Object{
		&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: actions.SystemNamespace, Name: "executor-0", Labels: map[string]string{
				"app.kubernetes.io/name": "plumbline", "app.kubernetes.io/component": "executor",
			}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning},
		},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: actions.SystemNamespace, Name: records.KeysConfigMap}, Data: map[string]string{"public.pem": a.Public}},
		LedgerFor("evidence", actions.ScopeEnvironment, func(l *v1alpha1.RemediationLedger) {
			l.Status.Chains = []v1alpha1.EvidenceChain{{PolicyUID: PolicyUID, Sequence: a.Head.Sequence, Digest: a.Head.Digest}}
		}),
	}
}

// Proxy answers as the executor does, by the real handler.
func (a *Archive) Proxy() records.Proxy {
	handler := evidencehttp.Handler(a.Writer.Store)
	return func(ctx context.Context, target portforward.Target, path string, query map[string]string) ([]byte, error) {
		if want := (portforward.Target{Namespace: actions.SystemNamespace, Pod: "executor-0", Port: 8081}); target != want {
			return nil, fmt.Errorf("nothing listens at %+v", target)
		}
		values := url.Values{}
		for name, value := range query {
			values.Set(name, value)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, path+"?"+values.Encode(), nil))
		switch w.Code {
		case http.StatusOK:
			return w.Body.Bytes(), nil
		case http.StatusNotFound:
			return nil, apierrors.NewNotFound(schema.GroupResource{}, path)
		}
		return nil, fmt.Errorf("%d %s", w.Code, w.Body)
	}
}
