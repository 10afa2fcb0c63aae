// SPDX-License-Identifier: Apache-2.0

package actions

import "errors"

// RefusalError says that the state of an object does not allow what is asked of it.
type RefusalError struct{ Message string }

func (e *RefusalError) Error() string { return e.Message }

// IsRefusal tells errors that are about the state of an object, and that a later look may not give.
func IsRefusal(err error) bool {
	if errors.Is(err, ErrPolicyChanged) {
		return true
	}
	return is[*RefusalError](err) || is[*PlanRefusedError](err) || is[*PlanSupersededError](err) || is[*ReleaseRefusedError](err) ||
		is[*StateChangedError](err) || is[*ReplacedError](err) || is[*ContendedError](err) || is[*QuarantineChangedError](err)
}

// IsGroupsRefusal tells errors that are about the groups whose rights a user wants to give to a policy.
func IsGroupsRefusal(err error) bool {
	return is[*NotMemberError](err) || is[*GroupTooLongError](err) || is[*TooManyGroupsError](err) || is[*AccountGroupsError](err)
}

func is[E error](err error) bool {
	_, found := errors.AsType[E](err)
	return found
}
