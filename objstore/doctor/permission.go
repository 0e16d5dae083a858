package doctor

import (
	"github.com/strandline/strandline/objstore"
)

// The actions of a policy, in S3's words.
const (
	actPut         = "s3:PutObject"
	actGet         = "s3:GetObject"
	actDelete      = "s3:DeleteObject"
	actList        = "s3:ListBucket"
	actAbort       = "s3:AbortMultipartUpload"
	actListUploads = "s3:ListBucketMultipartUploads"
	actVersioning  = "s3:GetBucketVersioning"
	actLock        = "s3:GetBucketObjectLockConfiguration"
	actLifecycle   = "s3:GetLifecycleConfiguration"
)

// actionOf is what a request needs. A copy needs two, and its denial does not tell which.
func actionOf(op objstore.Op) string {
	switch op {
	case objstore.OpPut, objstore.OpCreateUpload, objstore.OpUploadPart, objstore.OpComplete:
		return actPut
	case objstore.OpGet, objstore.OpHead:
		return actGet
	case objstore.OpDelete:
		return actDelete
	case objstore.OpList:
		return actList
	case objstore.OpAbort:
		return actAbort
	case objstore.OpListUploads:
		return actListUploads
	}
	return ""
}

// permissions are the actions, one by one, as checks without requests of their own: what
// the requests of all other checks were told.
func permissions() []check {
	return []check{
		{name: actPut, required: true, proves: "the credentials may write", breaks: "nothing can be published: a writer's disk fills"},
		{name: actGet, required: true, proves: "the credentials may read", breaks: "nothing can be read, and no lost answer read back"},
		{name: actList, required: true, proves: "the credentials may list", breaks: "takeover, sweep and fsck, and an absent key is told as denied"},
		{name: actDelete, required: true, proves: "the credentials may delete", breaks: "the auditor frees nothing (a writer does without it)"},
		{name: actAbort, required: true, proves: "the credentials may abort uploads", breaks: "the parts of lost races are billed until a lifecycle rule drops them"},
		{name: actListUploads, required: true, proves: "the credentials may list unfinished uploads", breaks: "the orphan judge cannot see what to abort"},
		{name: actVersioning, proves: "the credentials may ask whether versions are kept", breaks: "a versioned bucket goes unnoticed"},
		{name: actLock, proves: "the credentials may ask for an object lock", breaks: "a locked bucket goes unnoticed until the first delete"},
		{name: actLifecycle, proves: "the credentials may ask for lifecycle rules", breaks: "a rule that expires live objects goes unnoticed"},
	}
}

// permit judges one action by what was answered.
func (s *session) permit(c check) Result {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	denied, asked := s.d.actions[c.name]
	if !asked {
		return judge(c, skips("no answer told"))
	}
	return judge(c, denied)
}
