// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"
)

const redisFix = "kubectl logs deployment/plumbline-redis -n plumbline-system\n" +
	"without Redis the assessor still finds drift; the writers of scalings and deletions are unknown"

// checkRedis asks the webhook, which writes the details: a Redis that is ready
// and refuses the webhook's user is of no use.
func checkRedis(s *Snapshot) []Finding {
	i := slices.IndexFunc(s.Workloads.Value, func(w Workload) bool { return w.Name == WebhookName })
	if !s.Workloads.known() || i < 0 {
		return []Finding{s.Workloads.unknown("whether Redis works")}
	}
	address := redisAddress(s.Workloads.Value[i].Args)
	if address == "" {
		return []Finding{{Severity: Info, Message: "no Redis is configured: writes through /scale and deletes are found, and their writer is not known",
			Fix: "set redis.enabled: true in the values of the chart, and apply the chart again"}}
	}
	if !s.Pods.present() {
		return []Finding{s.Pods.unknown("whether the webhook reaches Redis at " + address)}
	}
	var down, idle []string
	asked := false
	for _, pod := range s.Pods.Value {
		if pod.Component != webhookComponent {
			continue
		}
		if !pod.Metrics.present() {
			return []Finding{pod.Metrics.unknown("whether " + pod.Name + " reaches Redis at " + address)}
		}
		asked = true
		switch useOf(pod.Metrics.Value) {
		case redisDown:
			down = append(down, pod.Name)
		case redisIdle:
			idle = append(idle, pod.Name)
		case redisUp:
		}
	}
	if !asked {
		return []Finding{{Severity: Unknown, Message: "cannot tell whether Redis at " + address + " works: there is no replica of the webhook"}}
	}
	return redisFindings(s, address, down, idle)
}

func redisAddress(args []string) string {
	address := ""
	for _, arg := range args {
		if value, ok := strings.CutPrefix(arg, "--redis-address="); ok {
			address = value
		}
	}
	return address
}

type redisUse int

const (
	redisIdle redisUse = iota
	redisUp
	redisDown
)

// useOf reads what a replica says of its last call. Its gauge is 0 also before
// the first call, so that alone proves nothing.
func useOf(m Metrics) redisUse {
	switch {
	case m[metricRedisUp] > 0:
		return redisUp
	case m[metricWritten]+m[metricDropped]+m[metricDepth] > 0:
		return redisDown
	default:
		return redisIdle
	}
}

func redisFindings(s *Snapshot, address string, down, idle []string) []Finding {
	if len(down) > 0 {
		return []Finding{{Severity: Warning, Object: "Deployment/" + s.Namespace + "/" + WebhookName, Fix: redisFix,
			Message: fmt.Sprintf("%s cannot write to Redis at %s: the details of writes are dropped", named(down), address)}}
	}
	if len(idle) == 0 {
		return nil
	}
	ready := slices.ContainsFunc(s.Workloads.Value, func(w Workload) bool { return w.Name == RedisName && w.Ready > 0 })
	if ready {
		return []Finding{{Severity: Info, Message: fmt.Sprintf("Redis is ready; %s had no record to write yet", named(idle))}}
	}
	return []Finding{{Severity: Unknown, Message: fmt.Sprintf("cannot tell whether Redis at %s works: %s had no record to write yet", address, named(idle))}}
}
