// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/doctor"
)

const (
	// issuerTimeout bounds the answer of an issuer, and maxDocument its document, in bytes.
	issuerTimeout = 5 * time.Second
	maxDocument   = 1 << 20
)

// newIssuerClient makes a client that sends no token of the user and follows no redirect, as the REST API does.
func newIssuerClient() *http.Client {
	return &http.Client{
		Timeout:       issuerTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// issuerOf returns the issuer that a discovery document names, asked from this machine (OpenID Connect Discovery 1.0). It is absent
// where a server answers without a document.
func issuerOf(ctx context.Context, by *http.Client, issuer string) doctor.Read[string] {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(issuer, "/")+"/.well-known/openid-configuration", http.NoBody)
	if err != nil {
		return doctor.Read[string]{Reason: err.Error()}
	}
	response, err := by.Do(request)
	if err != nil {
		return doctor.Read[string]{Reason: err.Error()}
	}
	defer response.Body.Close()
	switch code := response.StatusCode; {
	case code >= http.StatusInternalServerError:
		return doctor.Read[string]{Reason: "the issuer answered " + response.Status}
	case code != http.StatusOK:
		return doctor.Gone[string]()
	}
	var document struct {
		Issuer string `json:"issuer"`
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxDocument)).Decode(&document); err != nil {
		return doctor.Gone[string]()
	}
	return doctor.Got(document.Issuer)
}

// trustedIssuer reads the flags of the API servers, where these run as pods of the cluster.
func (r *reader) trustedIssuer(ctx context.Context) doctor.Read[doctor.TrustedIssuer] {
	pods := &corev1.PodList{}
	err := r.client.List(ctx, pods, client.InNamespace(metav1.NamespaceSystem), client.MatchingLabels{"component": "kube-apiserver"})
	if err != nil {
		return result(doctor.TrustedIssuer{}, "list pods in namespace "+metav1.NamespaceSystem, err)
	}
	var servers [][]string
	for i := range pods.Items {
		for _, c := range pods.Items[i].Spec.Containers {
			servers = append(servers, slices.Concat(c.Command, c.Args))
		}
	}
	return doctor.ParseTrustedIssuer(servers)
}

// readSkew tells how far the clock of a pod is ahead of that of the API server, by the Date of answers of both. Date has whole seconds.
func (r *reader) readSkew(ctx context.Context, pod string, port int32) doctor.Read[time.Duration] {
	ctx, cancel := context.WithTimeout(ctx, metricsTimeout)
	defer cancel()
	namespace := r.snapshot.Namespace
	there, isForbidden, err := r.askDate(ctx, fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:%d/proxy/metrics", namespace, pod, port))
	if err != nil {
		read := doctor.Read[time.Duration]{Reason: err.Error()}
		if isForbidden {
			read.Right = "get pods/proxy in namespace " + namespace
		}
		return read
	}
	asked := r.options.Now()
	here, _, err := r.askDate(ctx, "/version")
	if err != nil {
		return doctor.Read[time.Duration]{Reason: err.Error()}
	}
	return doctor.Got(there.Add(r.options.Now().Sub(asked)).Sub(here))
}

// askDate returns the Date of an answer of the API server, or of the pod to which a path of the API server leads.
func (r *reader) askDate(ctx context.Context, path string) (date time.Time, isForbidden bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.raw.Get().AbsPath(path).URL().String(), http.NoBody)
	if err != nil {
		return date, false, err
	}
	response, err := r.http.Do(request)
	if err != nil {
		return date, false, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return date, response.StatusCode == http.StatusForbidden, errors.New("the answer is " + response.Status)
	}
	date, err = http.ParseTime(response.Header.Get("Date"))
	return date, false, err
}
