// SPDX-License-Identifier: Apache-2.0

package receive

import (
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/plumbline-dev/plumbline/pkg/traffic/signals"
	"github.com/plumbline-dev/plumbline/pkg/traffic/tokens"
)

// pod is what the streams of one pod have in common. It outlives them until its bucket is full
// again, so that a new stream gains nothing.
type pod struct {
	streams int
	rate    tokens.Rate
	bucket  tokens.Bucket
}

// Each slot that a proxy may tell of has so many tokens: a flush of 7 KB every ten seconds is
// 0.2 a second.
const slotRate, slotBurst = 0.5, 16

// rate of what a proxy may send.
func (s *Server) rate(p signals.Proxy) tokens.Rate {
	slots := float64(s.config.Signals.SlotsOf(p))
	return tokens.Rate{PerSecond: slotRate * slots, Burst: slotBurst * slots}
}

// open a stream, unless there are too many.
func (s *Server) open(in Admission) (Reason, error) {
	p := signals.Proxy{UID: in.Proxy.PodUID, Namespace: in.Proxy.Namespace, Name: in.Proxy.Pod, Gateway: in.Gateway}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	s.sweep(now)
	own := s.pods[p.UID]
	if own == nil {
		r := s.rate(p)
		own = &pod{rate: r, bucket: tokens.NewBucket(r, now)}
		s.pods[p.UID] = own
	}
	if own.streams >= s.config.Streams {
		return ReasonStreams, status.Errorf(codes.ResourceExhausted, "the pod has %d streams already", s.config.Streams)
	}
	if err := own.spend(0, now); err != nil {
		return ReasonRate, err
	}
	if !s.counts.Open(p, now) {
		return ReasonProxies, status.Error(codes.ResourceExhausted, "there are too many proxies")
	}
	own.streams++
	s.observer.Streams(1)
	return "", nil
}

func (s *Server) close(uid string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	s.counts.Close(uid, now)
	s.pods[uid].streams--
	s.sweep(now)
	s.observer.Streams(-1)
}

// spend the tokens of a message.
func (s *Server) spend(in Admission, bytes int) error {
	s.mu.Lock()
	err := s.pods[in.Proxy.PodUID].spend(bytes, s.now())
	s.mu.Unlock()
	if err != nil {
		s.observer.Rejected(ReasonRate, 1)
	}
	return err
}

func (p *pod) spend(bytes int, now time.Time) error {
	if p.bucket.Spend(p.rate, tokens.Of(bytes), now) {
		return nil
	}
	return status.Errorf(codes.ResourceExhausted, "the pod sends more than %g messages of 4 KiB a second, after %g at once: want fewer", p.rate.PerSecond, p.rate.Burst)
}

// sweepEvery so often pods are forgotten that have no stream and a full bucket.
const sweepEvery = 10 * time.Second

func (s *Server) sweep(now time.Time) {
	if now.Sub(s.swept) < sweepEvery {
		return
	}
	s.swept = now
	for uid, p := range s.pods {
		if p.streams == 0 && p.bucket.Full(p.rate, now) {
			delete(s.pods, uid)
		}
	}
}
