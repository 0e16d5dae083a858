package catalog

// MaxTake bounds one TakeDue.
const MaxTake = 10_000

// ValidateTake checks a request for due markers.
func ValidateTake(k *Take) error {
	if len(k.Duties) == 0 || k.Owner == "" || k.Lease <= 0 || k.Limit <= 0 || k.Limit > MaxTake || k.Ahead < 0 {
		return Invalid("TakeDue", "%d duties, owner %q, lease %v, limit %d, ahead %v", len(k.Duties), k.Owner, k.Lease, k.Limit, k.Ahead)
	}
	return nil
}
