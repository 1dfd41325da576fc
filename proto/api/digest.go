package api

// ContentDigestHeader is the key of the response header in which our registry
// sends, with every stream, the digest of the content that it answers from. A
// client that knows the digest need not read the content again. Other servers of
// the contract do not send it.
const ContentDigestHeader = "chandlery-content-digest"
