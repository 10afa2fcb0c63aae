// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"crypto/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestARevisionKeepsTheFieldManagersOfTheObjectItself(t *testing.T) {
	helm := metav1.ManagedFieldsEntry{Manager: "helm", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)}
	status := metav1.ManagedFieldsEntry{Manager: "kube-controller-manager", Subresource: "status"}
	huge := metav1.ManagedFieldsEntry{Manager: rand.Text()}
	for len(huge.Manager) < 3*v1alpha1.MaxFieldManagersBytes {
		huge.Manager += rand.Text()
	}
	tests := map[string]struct{ of, want []metav1.ManagedFieldsEntry }{
		"without those of subresources": {[]metav1.ManagedFieldsEntry{status, helm}, []metav1.ManagedFieldsEntry{helm}},
		"none":                          {[]metav1.ManagedFieldsEntry{status}, nil},
		"none that are too large":       {[]metav1.ManagedFieldsEntry{helm, huge}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := &v1alpha1.BaselineRevision{Spec: v1alpha1.BaselineRevisionSpec{FieldManagers: kube.EncodeFieldManagers(test.of)}}
			got, err := kube.DecodeFieldManagers(r)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFieldManagersThatAreDamagedAreAnError(t *testing.T) {
	for name, damaged := range map[string][]byte{"no Zstandard": []byte("{}"), "no JSON": kube.Compress([]byte("{")), "another JSON": kube.Compress([]byte(`{"a":1}`))} {
		t.Run(name, func(t *testing.T) {
			r := &v1alpha1.BaselineRevision{Spec: v1alpha1.BaselineRevisionSpec{FieldManagers: damaged}}
			if got, err := kube.DecodeFieldManagers(r); err == nil {
				t.Errorf("got %v", got)
			}
		})
	}
}
