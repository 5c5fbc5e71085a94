public import CBirdRealtimeABI

/// Name and sentence of every status of the header.
private let statuses: [(status: bird_status, name: StaticString, message: StaticString)] = [
    (BIRD_OK, "BIRD_OK", "Success."),
    (BIRD_ERR_ARGUMENT, "BIRD_ERR_ARGUMENT", "An argument is NULL, too long, malformed or out of range."),
    (BIRD_ERR_HANDLE, "BIRD_ERR_HANDLE", "This is not a handle of the wanted kind, or no longer one."),
    (BIRD_ERR_CLOSED, "BIRD_ERR_CLOSED", "The client was closed."),
    (BIRD_ERR_OPTION, "BIRD_ERR_OPTION", "There is no option of this name."),
    (BIRD_ERR_VALUE, "BIRD_ERR_VALUE", "The option does not accept this value."),
    (BIRD_ERR_STATE, "BIRD_ERR_STATE", "This is not possible in the present state."),
    (BIRD_ERR_NAME, "BIRD_ERR_NAME", "The protocol does not allow this name."),
    (BIRD_ERR_NOT_SUBSCRIBED, "BIRD_ERR_NOT_SUBSCRIBED", "The channel is not subscribed now."),
    (BIRD_ERR_UNSUBSCRIBED, "BIRD_ERR_UNSUBSCRIBED", "The channel was unsubscribed."),
    (BIRD_ERR_PAYLOAD, "BIRD_ERR_PAYLOAD", "The payload is not JSON."),
    (BIRD_ERR_SIZE, "BIRD_ERR_SIZE", "This is larger than a limit."),
    (BIRD_ERR_FULL, "BIRD_ERR_FULL", "A bounded queue is full."),
    (BIRD_ERR_BUSY, "BIRD_ERR_BUSY", "Another thread uses the queue."),
    (BIRD_ERR_CALLBACK, "BIRD_ERR_CALLBACK", "A waiting call is not possible inside a handler."),
    (BIRD_ERR_TIMEOUT, "BIRD_ERR_TIMEOUT", "The time has passed."),
    (BIRD_ERR_FORKED, "BIRD_ERR_FORKED", "The handle belongs to the parent process."),
    (BIRD_ERR_SPACE, "BIRD_ERR_SPACE", "The buffer is too small."),
    (BIRD_ERR_ANSWERED, "BIRD_ERR_ANSWERED", "The request has been answered, or its deadline has passed."),
    (BIRD_ERR_UNSUPPORTED, "BIRD_ERR_UNSUPPORTED", "This is not available here."),
    (BIRD_ERR_SYSTEM, "BIRD_ERR_SYSTEM", "The operating system refused a resource."),
    (BIRD_ERR_WOKEN, "BIRD_ERR_WOKEN", "The wait was ended by bird_queue_wake()."),
    (BIRD_ERR_DENIED, "BIRD_ERR_DENIED", "The authorizer or the edge said no."),
    (BIRD_ERR_AUTH, "BIRD_ERR_AUTH", "The authorizer gave no usable answer."),
    (BIRD_ERR_REFUSED, "BIRD_ERR_REFUSED", "The edge refused the connection."),
    (BIRD_ERR_LOST, "BIRD_ERR_LOST", "The connection was lost."),
    (BIRD_ERR_RESOLVE, "BIRD_ERR_RESOLVE", "The host name could not be resolved."),
    (BIRD_ERR_CONNECT, "BIRD_ERR_CONNECT", "No connection could be made."),
    (BIRD_ERR_TLS, "BIRD_ERR_TLS", "No verified TLS session could be made."),
    (BIRD_ERR_PROXY, "BIRD_ERR_PROXY", "The proxy could not be reached, or refused or broke the connection."),
    (BIRD_ERR_UPGRADE, "BIRD_ERR_UPGRADE", "The server did not accept the WebSocket upgrade."),
    (BIRD_ERR_PROTOCOL, "BIRD_ERR_PROTOCOL", "The server broke the protocol."),
    (BIRD_ERR_SERVER, "BIRD_ERR_SERVER", "The edge reported an error."),
    (BIRD_ERR_DECRYPTION, "BIRD_ERR_DECRYPTION", "An encrypted event could not be opened."),
    (BIRD_ERR_GAVE_UP, "BIRD_ERR_GAVE_UP", "As many reconnects as the program allows were in vain."),
    (BIRD_ERR_IDENTITY, "BIRD_ERR_IDENTITY", "The edge accepted a signin without saying which member signed in."),
    (BIRD_ERR_MALFORMED, "BIRD_ERR_MALFORMED", "A message of the edge was malformed and is lost."),
]

@c @implementation
public func bird_status_name(_ status: bird_status) -> UnsafePointer<CChar>! {
    constant(statuses.first { $0.status == status }?.name ?? "BIRD_ERR_UNKNOWN")
}

@c @implementation
public func bird_status_message(_ status: bird_status) -> UnsafePointer<CChar>! {
    constant(statuses.first { $0.status == status }?.message ?? "A status that this version does not know.")
}
