import CBirdRealtimeABI

/// What an applicant needs before the edge can be asked, and how it is called in messages.
extension Session {
    enum Requirement {
        case nothing
        case authorization
        case impossible(Fault)
    }

    func requirement(of applicant: Applicant) -> Requirement {
        switch applicant {
        case .signin:
            if configuration.hasMemberAuthorizer { return .authorization }
            return .impossible(
                Fault(
                    BIRD_ERR_AUTH, .signin, field: "member_auth_endpoint",
                    "A signin needs an authorizer: set the option member_auth_endpoint or member_authorizer."))
        case .channel(let slot):
            let channel = channels[slot]
            switch channel.kind {
            case .public, .member:
                return .nothing
            case .private, .presence, .encrypted:
                if configuration.hasChannelAuthorizer { return .authorization }
                return .impossible(
                    Fault(
                        BIRD_ERR_AUTH, .authorization, field: "auth_endpoint",
                        "Subscribing to \(channel.name) needs an authorizer: set the option auth_endpoint or authorizer."
                    ))
            }
        case .key:
            return .authorization
        }
    }

    /// Why an authorizer's answer cannot be sent to the edge, nil if it can.
    func unusable(
        auth: String, memberData: String?, _ sharedSecret: ChannelKey?, _ applicant: Applicant
    ) -> Fault? {
        if auth.isEmpty {
            return Fault(
                BIRD_ERR_AUTH, area(of: applicant), field: "auth",
                "The authorizer's answer for \(title(of: applicant)) has no auth string.")
        }
        if applicant == .signin, memberData?.isEmpty ?? true {
            return Fault(
                BIRD_ERR_AUTH, .signin, field: dialect.identityKey,
                "The authorizer's answer for the signin has no \(dialect.identityKey) string.")
        }
        if needsKey(applicant), sharedSecret == nil {
            return Fault(
                BIRD_ERR_AUTH, .channel, field: "shared_secret",
                "The authorizer's answer for \(title(of: applicant)) has no shared_secret of \(ChannelKey.bytesCount) bytes in Base64."
            )
        }
        return nil
    }

    private func needsKey(_ applicant: Applicant) -> Bool {
        switch applicant {
        case .signin: false
        case .channel(let slot): channels[slot].kind == .encrypted
        case .key: true
        }
    }

    func area(of applicant: Applicant) -> Fault.Area {
        applicant == .signin ? .signin : .channel
    }

    func channelName(of applicant: Applicant) -> String? {
        switch applicant {
        case .signin: nil
        case .channel(let slot), .key(let slot): channels[slot].name
        }
    }

    func title(of applicant: Applicant) -> String {
        switch applicant {
        case .signin: "the signin"
        case .channel(let slot): "the subscription of \(channels[slot].name)"
        case .key(let slot): "the key of \(channels[slot].name)"
        }
    }
}
