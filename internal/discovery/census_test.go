// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestTheCensusCountsInjectedPodsThatRun(t *testing.T) {
	pod := func(uid string, phase corev1.PodPhase) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}, Status: corev1.PodStatus{Phase: phase}}
	}
	ending := pod("ending", corev1.PodRunning)
	ending.DeletionTimestamp = &metav1.Time{}
	c := &census{
		pods: func(context.Context) ([]corev1.Pod, error) {
			return []corev1.Pod{pod("a", corev1.PodRunning), pod("b", corev1.PodRunning), pod("starts", corev1.PodPending), pod("over", corev1.PodFailed), ending}, nil
		},
		seated:    func(uid string) bool { return uid == "b" || uid == "over" || uid == "ending" },
		injected:  prometheus.NewDesc("injected", "Help.", nil, nil),
		connected: prometheus.NewDesc("connected", "Help.", nil, nil),
	}
	const want = "# HELP connected Help.\n# TYPE connected gauge\nconnected 1\n# HELP injected Help.\n# TYPE injected gauge\ninjected 2\n"
	if err := testutil.CollectAndCompare(c, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	c.pods = func(context.Context) ([]corev1.Pod, error) { return nil, errors.New("not synced") }
	if n := testutil.CollectAndCount(c); n != 0 {
		t.Errorf("%d figures about what is not known", n)
	}
}
