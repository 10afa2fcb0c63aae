// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// honorAccept authorizes what is observed if, and only if, the guards let the
// requester accept and the request names its hash. A request for any other state is
// cleared: left lying there, it would authorize that state the day it came back.
func (s *step) honorAccept(observed canon.Hash) (canon.Hash, error) {
	request := s.in.Accept
	s.effects = append(s.effects, ClearAccept{})
	if s.refuseAccept() {
		return observed, nil
	}
	if request.Hash != string(observed) {
		s.event(EventWarning, ReasonAcceptOutdated, "%s accepted %s, but observed is %s: the request has no effect",
			request.RequestedBy, request.Hash, observed)
		return observed, nil
	}
	body := s.body
	if s.st.authorizes() && s.want != nil {
		var err error
		if body, err = acceptedBody(s.body, s.st.Body, s.gvk, s.in.Rules, s.st.Masks); err != nil {
			return observed, err
		}
	}
	if err := s.authorize(body, request.RequestedBy, v1alpha1.OriginCreated); err != nil {
		return observed, err
	}
	s.st.Findings, s.st.FindingsTotal, s.st.pending = nil, 0, nil
	s.tellAuthorized(ReasonAccepted, "revision %d: accepted by %s", s.st.Authorized.Number, request.RequestedBy)
	return canon.Hash(s.st.Authorized.Hash), nil
}
