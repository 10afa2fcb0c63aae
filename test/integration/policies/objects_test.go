// SPDX-License-Identifier: Apache-2.0

//go:build integration

package policies

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
)

var deploymentKind = appsv1.SchemeGroupVersion.WithKind("Deployment")

func deployment(name string) *appsv1.Deployment { return guarded.Workload(tenant, name, "shop:1", 1) }

func baseline(name string) *v1alpha1.Baseline {
	return &v1alpha1.Baseline{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: tenant},
		Spec: v1alpha1.BaselineSpec{
			Target: v1alpha1.BaselineTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: name},
			Authorised: &v1alpha1.AuthorisedState{
				Hash: "pl1:sha256:aa", Revision: name + "-1", Number: 1, By: "ci",
				At: metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), Origin: v1alpha1.OriginCreated,
			},
		},
	}
}

func revision(name, of string) *v1alpha1.BaselineRevision {
	return &v1alpha1.BaselineRevision{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: tenant},
		Spec: v1alpha1.BaselineRevisionSpec{
			Baseline: of, Number: 1, Hash: "pl1:sha256:aa", By: "ci",
			At:       metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
			Encoding: v1alpha1.BodyEncodingZstd, Body: []byte("body"), Size: 4,
		},
	}
}
