// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"time"
)

// checkAPIClock finds replicas of the REST API whose clock differs from that of the API server.
func checkAPIClock(s *Snapshot) []Finding {
	const what = "whether the clocks of the REST API are right"
	if !s.Pods.known() {
		return []Finding{s.Pods.unknown(what)}
	}
	replicas := 0
	var out []Finding
	for i := range s.Pods.Value {
		p := &s.Pods.Value[i]
		if p.Component != APIComponent || !p.Ready {
			continue
		}
		replicas++
		f := Finding{Severity: Warning, Object: "Pod/" + s.Namespace + "/" + p.Name, Fix: "check NTP on the node of the pod"}
		switch {
		case !p.Skew.present():
			f = p.Skew.unknown(what)
		case p.Skew.Value.Abs() <= maxSkew:
			continue
		default:
			f.Message = fmt.Sprintf("its clock is %s the API server's: tokens and sessions end at another time", distanceOf(p.Skew.Value))
		}
		out = append(out, f)
	}
	if replicas == 0 {
		return []Finding{Read[int]{Reason: "no replica is ready"}.unknown(what)}
	}
	return out
}

// distanceOf words how far a clock is ahead of another one.
func distanceOf(ahead time.Duration) string {
	if ahead < 0 {
		return (-ahead).Round(time.Second).String() + " behind"
	}
	return ahead.Round(time.Second).String() + " ahead of"
}
